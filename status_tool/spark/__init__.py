"""Rows of both sides in, counts, findings and an outcome out: the plan, what is joined with what."""
