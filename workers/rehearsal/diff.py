"""Moved to workers.diff."""

from workers.diff import Budget, Diff, unified

__all__ = ["Budget", "Diff", "unified"]
