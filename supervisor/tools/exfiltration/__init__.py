"""The judge of addresses that may carry out what a session has read. Pure."""
