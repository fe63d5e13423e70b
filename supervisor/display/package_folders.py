"""Directories of packages among the changes of a call: each is one line, as an install leaves thousands of names. Pure.

Rule: only what nobody edits by hand is taken together, and where it is much; what other programs obey stays named.
"""

from collections.abc import Iterable
from typing import Final

from workers.changes.effects import Change

_ANYWHERE: Final = frozenset({"node_modules", ".venv"})
_AT_THE_TOP: Final = frozenset({"target", "vendor"})
_EGG: Final = ".egg-info"
_PYTHONS: Final = ".dist-info"
LEAST: Final = 5
"""Names that are a line of their own each, if there are fewer."""


def folder_of(path: str) -> str:
    """Return the outermost directory of packages that a path lies in, or is; "" where there is none."""
    parts = path.split("/")
    if ".git" in parts:
        return ""
    if parts[0] in _AT_THE_TOP and len(parts) > 1:
        return parts[0]
    for at, part in enumerate(parts):
        if part in _ANYWHERE or (part.endswith(_EGG) and at + 1 < len(parts)):
            return "/".join(parts[: at + 1])
    return ""


def folders(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Return the directories of packages in which much changes, each with what does."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        if folder := folder_of(change.path):
            found.setdefault(folder, []).append(change)
    return {folder: each for folder, each in found.items() if len(each) >= LEAST}


def count_packages(changes: Iterable[Change]) -> int:
    """Return how many packages of Node or Python are among changes."""
    found: set[str] = set()
    for change in changes:
        before, node, name = change.path.rpartition("node_modules/")
        if node and not name.startswith("."):
            found.add(before + "/".join(name.split("/")[: 1 + name.startswith("@")]))
        elif name := next((part for part in change.path.split("/") if part.endswith(_PYTHONS)), ""):
            found.add(name)
    return len(found)
