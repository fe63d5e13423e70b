"""The root itself, where what other programs obey is read-only: the place of a command that runs without a rehearsal.

Rule: nobody sees what such a command changes before it does, so what is there and protected (`workers.tree.protected`)
is mounted read-only over itself, and each directory on the way to it over itself: a mount cannot be renamed or removed.
"""

import os
from collections.abc import Iterator
from typing import Final

from workers.confine import mounts
from workers.errors import CannotRehearse
from workers.shell.sandbox.command_mounts import show_root_itself
from workers.tree.git_config import GitConfigs
from workers.tree.obeyed_names import folded
from workers.tree.protected import protection_of
from workers.tree.root import closing

NAMES: Final = 200_000
"""Names of a root that are looked at."""
_GIT: Final = ".git"


def show_guarded_root(path: str) -> None:
    """Show the root itself, guarded: a `Place`.

    Raises:
        CannotRehearse: the root has too many names.
        OSError: something cannot be mounted.
    """
    guarded = list(_guarded())
    on_the_way = {name[:at] for name in guarded for at, char in enumerate(name) if char == "/"}
    show_root_itself(path)
    for name in sorted(on_the_way | {*guarded}):
        place = os.path.join(path, name)
        mounts.bind(place, place, 0 if name in on_the_way else mounts.READ_ONLY)


def _guarded() -> Iterator[str]:
    """Yield what is protected in the current directory, the root, without what lies in it.

    Of a repository these are the names in its `.git`, for git writes others there.
    """
    with closing(os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as root:
        configs = GitConfigs(root)
        left, directories = NAMES, [""]
        while directories:
            for entry in _entries(directories.pop()):
                left -= 1
                if left < 0:
                    raise CannotRehearse(
                        f"more than {NAMES} names are in the root: too many to guard what programs obey"
                    )
                path = entry.path.removeprefix("./")
                is_directory = entry.is_dir(follow_symlinks=False)
                if is_directory and folded(entry.name) == _GIT:
                    directories.append(path)
                elif entry.is_symlink():
                    continue
                elif protection_of(path, os.path.lexists, configs).protected:
                    yield path
                elif is_directory and folded(os.path.dirname(path).rpartition("/")[2]) != _GIT:
                    directories.append(path)


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(f"./{directory}") as found:
            return list(found)
    except OSError:  # what cannot be listed
        return []
