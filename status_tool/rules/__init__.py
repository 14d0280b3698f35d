"""Rows and context in, findings out: each rule in one file, as codes, as a plain function and as SQL; no I/O."""
