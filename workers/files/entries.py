"""The names in one directory, in no order, each with what it is.

Rule: nothing is opened and no link is followed here. Names that are not UTF-8 cannot be written in an answer:
they are counted and left out. Drafts of writes in progress are left out silently.
"""

import os
from itertools import islice
from typing import Final, Literal, NamedTuple

from workers.tree.drafts import is_draft

Kind = Literal["file", "dir", "link", "other"]

MOST: Final = 500_000
"""Names that one call looks at."""


DirEntry = tuple[str, Kind]
"""One name, and what it is; `other` is a FIFO, a socket or a device."""


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
    with os.scandir(directory) as found:
        shown = (each for each in found if each.name[0] != "." or not is_draft(each.name))
        entries = [(each.name, _kind(each)) for each in islice(shown, most)]
        cut = next(shown, None) is not None
    if _is_text("".join([name for name, _ in entries])):
        return Entries(entries, 0, cut)
    named = [each for each in entries if _is_text(each[0])]
    return Entries(named, len(entries) - len(named), cut)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(entry: os.DirEntry[str]) -> Kind:
    try:
        if entry.is_file(follow_symlinks=False):
            return "file"
        if entry.is_dir(follow_symlinks=False):
            return "dir"
        return "link" if entry.is_symlink() else "other"
    except OSError:
        return "other"
