"""What can be typed: each command with its options and its help, and nothing of what it does."""
