"""Files that a command has left in caches of package managers, and that may be kept.

Rule: nothing is trusted to be small, a file, or what it is called: a file that is named by its digest must have it. Of
pip's cache the wheels are taken out, by the names that they give themselves.
"""

import encodings.cp437  # noqa: F401 - of names in wheels, which a locked worker cannot import
import hashlib
import io
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from workers.shell.cache_table import LINKS, is_kept
from workers.tree.root import closing

_LARGEST: Final = 2**28
"""Bytes of one file that is kept."""
_NAMES: Final = 100_000
_TOGETHER: Final = 2**32
"""Bytes that are read, of what is kept and of what is not."""
_METADATA: Final = 2**20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIPS: Final = b"cc=4,"
"""How an entry of pip's cache of responses begins (CacheControl's format 4, msgpack)."""


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
                path, content = _wheel(content) if wheels else (path, content)
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


def _wheel(entry: bytes) -> tuple[str, bytes]:
    """Return a wheel that pip has fetched, and where it is kept; nothing of any other entry."""
    content = entry
    if entry.startswith(_PIPS):
        with suppress(msgspec.DecodeError, KeyError, TypeError):
            content = msgspec.msgpack.decode(entry[len(_PIPS) :])["response"]["body"] or b""
    if not isinstance(content, bytes) or not content.startswith(b"PK\x03\x04"):
        return "", b""
    with suppress(zipfile.BadZipFile, KeyError, ValueError, OSError, NotImplementedError, RuntimeError):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            name = _wheel_name(archive)
        if is_kept("pypi", f"{LINKS}/{name}"):
            return f"{LINKS}/{name}", content
    return "", b""


def _wheel_name(archive: zipfile.ZipFile) -> str:
    """Return the file name of a wheel as PEP 427 makes it of what it says of itself."""
    [info] = {each.partition("/")[0] for each in archive.namelist() if each.endswith(".dist-info/WHEEL")}
    with archive.open(f"{info}/WHEEL") as file:
        lines = file.read(_METADATA).decode().splitlines()
    fields = [line.partition(":")[::2] for line in lines]
    tags = [value.strip().split("-") for key, value in fields if key == "Tag"]
    build = [value.strip() for key, value in fields if key == "Build"]
    columns = (".".join(dict.fromkeys(column)) for column in zip(*tags, strict=True))
    name = "-".join((info.removesuffix(".dist-info"), *build, *columns))
    return f"{name}.whl" if re.fullmatch(r"[A-Za-z0-9_.!+-]+", name) else ""
