"""Command lines in, exit codes out: which options go together, and the only place that turns errors into a line."""
