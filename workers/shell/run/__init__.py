"""One command from its start to its end."""
