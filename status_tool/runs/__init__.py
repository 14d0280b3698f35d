"""A request in, an outcome or a file out: write a side, dump it, check it once, in rounds or from files."""
