"""Changes in git's own directories, as far as rules tell them apart.

Rule: pure, by exact paths and never by what a command said. Objects are only added: git names one by its content, and
never writes it again. Which refs may move stands in a rule's patterns, name by name.
"""

import re
from typing import Final

from workers.changes.effects import What

_LOOKING: Final = "blame diff grep log ls-files rev-parse show status"
MADE_FOR: Final = frozenset(("commit --amend", *f"add apply clean commit mv restore rm {_LOOKING}".split()))
"""Subcommands that a yes may make a rule of: those that move no ref but the branch that is checked out."""

_GIT: Final = re.compile(r"(?:^|/)(?:[^/]*\.git|git~1)[. ]*(?:/|$)", re.IGNORECASE)
"""Git's directory, also as a file system that folds case has it, or one that is named as such."""
_OBJECTS: Final = re.compile(r"(?:.*/)?\.git/objects/")
_OBJECT: Final = re.compile(
    r"(?:[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev))"
)
_MOVED: Final = re.compile(r"(?:.*/)?\.git/(?:index|COMMIT_EDITMSG|logs/HEAD|(?:logs/)?refs/heads/.+)")
"""What a commit on a branch writes besides objects (gitrepository-layout(5))."""


def in_git(path: str) -> bool:
    """Say whether a path is git's directory, or lies in it."""
    return _GIT.search(path) is not None


def objects_of(path: str) -> str:
    """Return the directory of objects that a path lies in, with a slash; empty where it lies in none."""
    found = _OBJECTS.match(path)
    return found[0] if found else ""


def moved_by_commit(path: str) -> bool:
    """Say whether a commit on a branch writes that path, besides objects."""
    return _MOVED.fullmatch(path) is not None


def only_adds(path: str, what: What) -> bool:
    """Say whether a change leaves all objects as they are, and makes none that git would not."""
    objects = objects_of(path)
    if not objects:
        return not in_git(path) or what in {"added", "modified", "times"}
    return what == "times" or (what == "added" and _OBJECT.fullmatch(path.removeprefix(objects)) is not None)
