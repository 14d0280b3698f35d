"""A status file in, cells of a table that replication ships out, and back on the other side."""
