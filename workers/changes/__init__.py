"""What a call would change, and how that is told."""
