"""Command lines in, exit codes out; the only place that turns errors into a line."""
