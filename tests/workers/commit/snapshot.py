"""Everything about a tree that a rehearsal has to keep."""

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """One name. Directories have no size and no time, for those change with what is in them."""

    kind: int
    mode: int
    content: str
    target: bytes
    attributes: tuple[tuple[str, bytes], ...]
    same_as: bytes
    """The first other name of the same file."""
    mtime_ns: int
    ctime_ns: int


Snapshot = dict[bytes, Entry]


def snapshot(root: str | Path) -> Snapshot:
    """Look at everything in a directory, and at itself (its name is empty)."""
    found: Snapshot = {}
    inodes: dict[tuple[int, int], bytes] = {}
    pending = [b""]
    base = os.fsencode(root)
    while pending:
        path = pending.pop()
        full = base + b"/" + path if path else base
        status = os.lstat(full)
        directory = stat.S_ISDIR(status.st_mode)
        first = path
        if not directory and status.st_nlink > 1:
            first = inodes.setdefault((status.st_dev, status.st_ino), path)
        link = stat.S_ISLNK(status.st_mode)
        found[path] = Entry(
            stat.S_IFMT(status.st_mode),
            stat.S_IMODE(status.st_mode),
            _digest(full, status),
            os.readlink(full) if link else b"",
            () if link else tuple((name, os.getxattr(full, name)) for name in sorted(os.listxattr(full))),
            b"" if first == path else first,
            0 if directory else status.st_mtime_ns,
            status.st_ctime_ns,
        )
        if directory:
            names = sorted(os.listdir(full), reverse=True)
            pending += [path + b"/" + name if path else name for name in names]
    return found


def lasting(tree: Snapshot) -> Snapshot:
    """Leave out the times of changes, which every commit sets."""
    return {path: entry._replace(ctime_ns=0) for path, entry in tree.items()}


def untouched(tree: Snapshot, before: Snapshot) -> Snapshot:
    """Give each file or link of which its times alone changed those that it had: that is not committed."""
    return {
        path: entry
        if path not in before or stat.S_ISDIR(entry.kind) or _but_times(entry) != _but_times(before[path])
        else entry._replace(mtime_ns=before[path].mtime_ns)
        for path, entry in tree.items()
    }


def _but_times(entry: Entry) -> Entry:
    return entry._replace(same_as=b"", mtime_ns=0, ctime_ns=0)


def timeless(tree: Snapshot, since_ns: int) -> Snapshot:
    """Leave out the times that two runs cannot have in common: those after `since_ns`."""
    return {
        path: entry._replace(ctime_ns=0, mtime_ns=entry.mtime_ns if entry.mtime_ns < since_ns else -1)
        for path, entry in tree.items()
    }


def _digest(path: bytes, status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return ""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
