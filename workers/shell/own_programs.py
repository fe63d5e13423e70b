"""Programs of the root's own: its virtual environment's, and its packages'.

Rule: they come first, as they do where a person has activated them. A directory of them that holds a name of the
system's own tools is left out: what is decided about `git` is about the system's, and not about what lies there.
"""

import os
from collections.abc import Collection, Sequence
from typing import Final

_DIRECTORIES: Final = (".venv/bin", "venv/bin", "node_modules/.bin")

_SYSTEMS: Final = frozenset(
    {
        *("git", "sh", "bash", "env", "ls", "cat", "cp", "mv", "rm", "mkdir", "touch", "ln", "find", "grep", "sed"),
        *("xargs", "chmod", "head", "tail", "cut", "tr", "wc", "sudo"),
    }
)
"""No package brings one of these."""


def own_directories(root: str, held: str, named: Sequence[str]) -> list[str]:
    """Return those of a root that count, by the path that a command sees.

    Args:
        root: the path that a command sees.
        held: where the root lies for us.
        named: those that the person's PATH names besides, relative to the root.
    """
    return [
        f"{root}/{each}"
        for each in dict.fromkeys((*_DIRECTORIES, *named))
        if _SYSTEMS.isdisjoint(_names(f"{held}/{each}"))
    ]


def _names(directory: str) -> Collection[str]:
    """Return what lies in a directory, which need not be there; where nobody may tell, what is not to be there."""
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:
        return _SYSTEMS


def own_program(name: str, root: str, held: str, named: Sequence[str]) -> str:
    """Return the file of a program of the root's own, by the path that a command sees; "" where there is none."""
    for directory in own_directories(root, held, named):
        file = f"{held}{directory.removeprefix(root)}/{name}"
        if "/" not in name and os.path.isfile(file) and os.access(file, os.X_OK):
            return f"{directory}/{name}"
    return ""
