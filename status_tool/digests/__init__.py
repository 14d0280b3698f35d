"""Two tables in, the rows and cells that differ out: row digests, apart from streams and files."""
