"""The daemon's side of the protocol: connections, updates, approvals."""
