"""The contract between supervisor and worker. Imports nothing."""
