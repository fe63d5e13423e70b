"""What changed: an overlay beside its root, name by name."""
