"""The fault campaign: random schedules on real clusters, and the tool's verdict against the truth."""
