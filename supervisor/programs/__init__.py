"""What the command line runs: each a use of the core, started by one command."""
