"""File systems on which a commit is impossible, found before anybody is asked about it.

Rule: a commit only renames, and exchanges names; where that is impossible, nothing is proposed. A file system that is
not known is believed to be able to.
"""

import os
from collections.abc import Sequence
from typing import Final

from workers.commit.operations import is_directory
from workers.treediff.comparison import Difference

_EXCHANGE_NOTHING: Final = frozenset(
    {"9p", "ceph", "cifs", "ecryptfs", "exfat", "hfsplus", "nfs", "nfs4", "ntfs3", "smb3", "vboxsf"}
)
"""Their rename2 in the kernel's fs/ refuses RENAME_EXCHANGE, some also RENAME_NOREPLACE."""

_OVERLAY: Final = "overlay"
"""Refuses to move a directory that was there when it was mounted (EXDEV), unless it was told otherwise."""


def obstacle(root: int, differences: Sequence[Difference]) -> str:
    """Return why these differences could not be committed to the root; empty where nothing is known to prevent it."""
    kind = _kind_of(root) if differences else ""
    if kind in _EXCHANGE_NOTHING:
        return f"the root's file system ({kind}) cannot exchange names"
    for path, before, after, inner in differences if kind == _OVERLAY else ():
        if is_directory(before) and not is_directory(after) and not inner:
            return f"the root lies on an overlay itself, which cannot let a directory go in one step ({path!r})"
    return ""


def _kind_of(root: int) -> str:
    """Return the name of the root's file system as /proc has it; empty where it does not say."""
    device = os.fstat(root).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split() for line in file]
    except OSError:
        return ""
    return next((line[line.index("-") + 1] for line in lines if line[2] == wanted), "")
