"""The sandbox of commands: a private root, its mounts, its locks."""
