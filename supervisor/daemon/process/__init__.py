"""The daemon as a process: lock, socket, logs, systemd."""
