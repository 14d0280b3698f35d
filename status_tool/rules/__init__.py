"""Rows and context in, findings out: each rule once, as codes and a function that Spark's workers run too; no I/O."""
