"""Staging directories, guarded by their lock: create, sweep abandoned ones, rescue half-committed ones.

Rule: one that can be locked has lost its owner. It is removed, or where its owner was in the middle of changing the
root, kept under a name that a person sees: then something in it may be nowhere else.
"""

import os
import stat
from contextlib import suppress
from typing import Final

from workers.commit.removal import remove_directory
from workers.commit.temporary_modes import put_back
from workers.tree.drafts import create_draft, is_draft, sweep_drafts
from workers.tree.root import closing, open_beneath

BEGUN: Final = stat.S_ISVTX
"""Of a directory's mode: names in the root are changing."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def draft(root: int) -> tuple[str, int]:
    """Make and lock a directory; return its name and descriptor.

    Raises:
        OSError: none can be made, opened or locked, and none is left.
    """

    def create(name: str) -> int | None:
        os.mkdir(name, stat.S_IRWXU, dir_fd=root)
        try:
            return os.open(name, _DIRECTORY, dir_fd=root)
        except FileNotFoundError:
            return None
        except BaseException:
            remove(name)
            raise

    def remove(name: str) -> None:
        with suppress(OSError):
            os.rmdir(name, dir_fd=root)

    return create_draft(create, remove)


def sweep(root: int) -> list[str]:
    """Remove the staging directories of processes that were killed; return the names of those that are kept."""
    kept: list[str] = []
    with closing(open_beneath(root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)) as directory:

        def take(name: str, dead: int) -> None:
            if not os.fstat(dead).st_mode & BEGUN:
                remove_directory(directory, name)
                return
            try:
                kept.append(keep(directory, name, dead))
            finally:
                put_back(directory, dead)

        with os.scandir(directory) as entries:
            names = [each.name for each in entries if is_draft(each.name) and each.is_dir(follow_symlinks=False)]
        sweep_drafts(names, take, directory)
    return kept


def keep(root: int, name: str, directory: int) -> str:
    """Give a staging directory a name that a person sees; return it."""
    visible = name.replace(".strongroom-", "strongroom-rescued-").removesuffix(".tmp")
    os.rename(name, visible, src_dir_fd=root, dst_dir_fd=root)
    os.fchmod(directory, stat.S_IRWXU)
    return visible
