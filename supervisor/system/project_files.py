"""Files of a root that package managers read, and that anybody may have written.

Rule: only regular files up to a size are read, of one look together no more than it says, and whatever is wrong with
one, it is as if it were not there. Patterns of names lead a few directories deep and no further. Blocks.
"""

import glob
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from supervisor.system.safe_files import AT_ONCE, read_bytes

LARGEST: Final = 2**23
MEMBERS: Final = 200
_STARS: Final = 2
_DEEPEST: Final = 8
"""Of a pattern: what stands for many names, and slashes."""
_PATTERNS: Final = 16
"""That stand for many names: each is a look at many directories."""


def text_of(path: str, largest: int = LARGEST) -> str:
    """Return what is in a regular file, with lines that end alike; "" where there is none, or too much."""
    try:
        return read_bytes(Path(path), largest).decode("utf-8", "replace").replace("\r\n", "\n")
    except (OSError, ValueError):
        return ""


class TooMuchError(Exception):
    """The files of one look have more bytes together than it may read."""


class ProjectFiles:
    """Those of one look.

    Args:
        most: bytes of all together.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    def text(self, path: str, largest: int = LARGEST) -> str:
        """Return what is in a file, as `text_of` does.

        Raises:
            TooMuchError: with those before it, there is more than may be read.
        """
        with suppress(OSError, ValueError):
            self._left -= os.stat(path).st_size
        if self._left < 0:
            raise TooMuchError
        return text_of(path, largest)


def begins_with(path: str, start: bytes) -> bool:
    """Say whether a regular file begins so."""
    try:
        with open(os.open(path, os.O_RDONLY | AT_ONCE), "rb") as file:
            return stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(len(start)) == start
    except (OSError, ValueError):
        return False


def matching(here: str, patterns: Iterable[str]) -> list[str]:
    """Return the names that patterns mean beneath a directory; none of those that could lead through a whole disk."""
    near = [each for each in islice(dict.fromkeys(patterns), MEMBERS) if _is_near(each)]
    many = [each for each in near if any(star in each for star in "*?[")][_PATTERNS:]
    near = [each for each in near if each not in many]
    return list(islice((name for each in near for name in glob.iglob(each, root_dir=here)), MEMBERS))


def _is_near(pattern: str) -> bool:
    away = pattern.startswith("/") or ".." in pattern or "**" in pattern
    return not away and pattern.count("/") <= _DEEPEST and sum(map(pattern.count, "*?[")) <= _STARS
