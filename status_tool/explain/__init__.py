"""Findings in; an outcome in words out, with advice, repairs and the causes by table; no I/O."""
