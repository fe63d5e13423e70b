"""The HTTP proxy beside a command that may use the network."""
