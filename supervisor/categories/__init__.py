"""categories."""
