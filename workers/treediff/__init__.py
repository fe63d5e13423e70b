"""The differences between an overlay and its root, name by name."""
