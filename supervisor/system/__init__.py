"""Files and sockets of our own, opened safely."""
