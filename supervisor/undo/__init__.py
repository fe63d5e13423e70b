"""What committed calls replaced, and what can be taken back."""
