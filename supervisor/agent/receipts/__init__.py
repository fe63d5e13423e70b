"""Receipts of turns: what the journal knows of what was done, and claims that it does not bear out."""
