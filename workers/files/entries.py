"""The names in one directory, sorted, each with what it is.

Rule: nothing is opened and no link is followed here. Names that are not UTF-8 cannot be written in an answer:
they are counted and left out. Drafts of writes in progress are left out silently.
"""

import os
from typing import Final, Literal, NamedTuple

from workers.tree.drafts import is_draft

Kind = Literal["file", "dir", "link", "other"]

MOST: Final = 500_000
"""Names that one call looks at."""


class DirEntry(NamedTuple):
    """One name; `other` is a FIFO, a socket or a device."""

    name: str
    kind: Kind


class Entries(NamedTuple):
    """What stands in a directory. `unspeakable` names are not UTF-8; `cut` says that there are more."""

    named: list[DirEntry]
    unspeakable: int
    cut: bool


def entries_of(directory: int, most: int = MOST) -> Entries:
    """Read the directory that the descriptor `directory` is open on.

    Raises:
        OSError: it cannot be listed.
    """
    named: list[DirEntry] = []
    unspeakable = 0
    with os.scandir(directory) as found:
        for entry in found:
            if len(named) + unspeakable >= most:
                return Entries(sorted(named), unspeakable, cut=True)
            if is_draft(entry.name):
                continue
            if _is_text(entry.name):
                named.append(DirEntry(entry.name, _kind(entry)))
            else:
                unspeakable += 1
    return Entries(sorted(named), unspeakable, cut=False)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(entry: os.DirEntry[str]) -> Kind:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "dir"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"
