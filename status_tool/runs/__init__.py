"""A request in, a file or an outcome out: write, check, follow, prune."""
