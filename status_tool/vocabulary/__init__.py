"""What all rooms share, and nothing that acts: rows of one schema, ids, sides, findings, verdicts, outcomes."""
