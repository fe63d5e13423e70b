"""The sessions that are open in the daemon, from opening to closing."""
