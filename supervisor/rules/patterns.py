"""Patterns of paths, as rules name them: those of `workers.tree.glob`, strictly read.

Rule: pure. A pattern that could be read in two ways is refused, since a rule that means something else than it says is
worse than none. `a/` is the directory itself, and all beneath it.
"""

from collections.abc import Sequence
from typing import Final

from workers.tree.glob import MEANS_MORE, Matcher, PatternError

LIMIT: Final = 4096
"""Characters of a pattern, and the longest path that Linux takes."""


def compiled(patterns: Sequence[str]) -> Matcher:
    """Return what matches exactly the paths that one of the patterns, at least, stands for.

    Raises:
        PatternError: one has no clear meaning.
    """
    alternatives: list[str] = []
    for pattern in patterns:
        _refuse(pattern)
        alternatives.append(pattern)
        if pattern.endswith("/") and {*pattern.split("/")} - {"", "."}:
            alternatives.append(f"{pattern}**")
    return Matcher(alternatives, strict=True)


def literal(path: str) -> str:
    """Return the pattern for exactly this path."""
    escaped = MEANS_MORE.sub(r"[\g<0>]", path)
    return f"[~]{escaped[1:]}" if escaped.startswith("~") else escaped


def _refuse(pattern: str) -> None:
    """Refuse what cannot be meant, or is not clear."""
    parts = pattern.split("/")
    problem = ""
    if not pattern or len(pattern) > LIMIT:
        problem = f"is empty or longer than {LIMIT} characters"
    elif pattern.startswith("/") or parts[0] == "~":
        problem = "is absolute, or in a home: name the path as it is seen from the root"
    elif ".." in parts:
        problem = "has a .. in it: name the path as it is seen from the root"
    elif any(char == "\0" or "\ud800" <= char <= "\udfff" for char in pattern):
        problem = "has a character that no path has"
    elif any("**" in part and part != "**" for part in parts):
        problem = "has a ** beside other characters: between slashes it stands alone"
    if problem:
        raise PatternError(problem)
