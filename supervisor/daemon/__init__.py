"""The daemon: one process a home that owns the conversations, and everything it stands on. Imports nothing."""
