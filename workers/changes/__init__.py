"""The changes that a call would make, as data and as text."""
