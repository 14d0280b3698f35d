"""Shared data types: rows of one schema, ids, sides, findings, verdicts, outcomes; no I/O."""
