"""A client's connection to the daemon: found, started, asked."""
