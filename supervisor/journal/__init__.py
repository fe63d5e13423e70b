"""The record of what happened: facts, the append-only journal that holds them, and two folds kept beside it."""
