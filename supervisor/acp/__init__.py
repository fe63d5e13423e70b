"""The contract between daemon and clients: the Agent Client Protocol, JSON-RPC 2.0, one message a line."""
