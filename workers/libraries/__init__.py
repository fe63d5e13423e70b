"""Manners with libraries: imports that they do without, and alarms for their work."""
