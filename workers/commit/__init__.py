"""Commits: the approved effects happen in the root, exactly, or not at all."""
