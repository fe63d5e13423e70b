"""Files that a command has left in caches of package managers, and that may be kept.

Rule: nothing is trusted to be small, a file, or what it is called: a file that is named by its digest must have it. Of
pip's cache the wheels are taken out (`pip_entry`).
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, NamedTuple

from workers.shell.cache_table import is_kept
from workers.tree.root import closing

_LARGEST: Final = 2**28
"""Bytes of one file that is kept."""
_NAMES: Final = 100_000
_TOGETHER: Final = 2**32
"""Bytes that are read, of what is kept and of what is not."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_DIGESTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "npm": r"content-v2/(sha(?:1|256|384|512))/(..)/(..)/(.+)",
        "pnpm": r"store/v\d+/files/()(..)/([0-9a-f]+)(?:-exec)?",
    }
)
"""Cache -> a pattern of the paths that are digests, of SHA-512 where they do not say."""


class CachedFile(NamedTuple):
    """One of them."""

    path: str
    """The cache's name, and the path in it."""
    mode: int
    content: bytes


def filled(names: Sequence[str], upper: int, shown: str = "") -> Iterator[CachedFile]:
    """Yield what a command has left in the upper layer of these caches, which are parts of one, that may be kept.

    Of a database the rows are added to those of the cache itself, which is beneath `shown`, by its name.
    """
    number = size = 0
    for place, _directories, files, directory in os.fwalk(".", dir_fd=upper, follow_symlinks=False):
        for file in files:
            number += 1
            if number > _NAMES:
                return
            path = os.path.normpath(os.path.join(place, file))
            wheels = "pypi" in names and path.startswith("http")
            name = "pypi" if wheels else next((each for each in names if is_kept(each, path)), "")
            if not name or not path.isprintable():
                continue
            with suppress(OSError), closing(os.open(file, _READ, dir_fd=directory)) as opened:
                status = os.fstat(opened)
                if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                    continue
                size += status.st_size
                if size > _TOGETHER:
                    return
                with open(opened, "rb", closefd=False) as reading:
                    content = reading.read()
                if wheels:
                    from workers.shell.pip_entry import wheel_in  # which has been prepared

                    path, content = wheel_in(content)
                if path.endswith("/index.db"):
                    from workers.shell.package_index import merged  # which has been prepared

                    content = merged(_kept(f"{shown}/{name}/{path}"), content)
                    path = path if content else ""  # it was none
                if path and _is_named_rightly(name, path, content):
                    yield CachedFile(f"{name}/{path}", status.st_mode, content)


def _kept(path: str) -> bytes:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(_LARGEST)
    return b""


def _is_named_rightly(name: str, path: str, content: bytes) -> bool:
    """Say whether a file has the digest that its name is, where it is one."""
    found = re.fullmatch(_DIGESTS[name], path) if name in _DIGESTS else None
    if found is None:
        return name != "npm"
    algorithm, *digits = found.groups()
    return hashlib.new(algorithm or "sha512", content).hexdigest() == "".join(digits)
