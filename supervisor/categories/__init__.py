"""The supervisor's half of each tool category: its configuration, and what its workers are given."""
