"""Views of the journal for people and scripts. Pure but for reading it."""
