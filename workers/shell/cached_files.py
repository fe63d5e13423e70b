"""Files that a command has left in caches of package managers, and that may be kept.

Rule: nothing is trusted to be small, a file, or what it is called. Of pip's cache the wheels are taken out, by the
names that they give themselves.
"""

import encodings.cp437  # noqa: F401 - of names in wheels, which a locked worker cannot import
import io
import os
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from workers.shell.cache_table import LINKS, is_kept
from workers.tree.root import closing

_LARGEST: Final = 2**28
"""Bytes of one file that is kept."""
_NAMES: Final = 100_000
_METADATA: Final = 2**20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIPS: Final = b"cc=4,"
"""How an entry of pip's cache of responses begins (CacheControl's format 4, msgpack)."""


def filled(name: str, upper: int) -> Iterator[tuple[str, bytes]]:
    """Yield what a command has left in the upper layer of a cache that may be kept: paths there, and contents.

    Nothing is trusted to be small, or a file.
    """
    number = 0
    for place, _directories, files, directory in os.fwalk(".", dir_fd=upper, follow_symlinks=False):
        for file in files:
            number += 1
            if number > _NAMES:
                return
            path = os.path.normpath(os.path.join(place, file))
            wheels = name == "pypi" and path.startswith("http")
            if not (wheels or is_kept(name, path)) or not path.isprintable():
                continue
            with suppress(OSError), closing(os.open(file, _READ, dir_fd=directory)) as opened:
                content = _content(opened)
                if wheels:
                    path, content = _wheel(content)
                if content:
                    yield path, content


def _content(file: int) -> bytes:
    """Return what is in a regular file, b"" of what is none or too large."""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        return b""
    with open(file, "rb", closefd=False) as opened:
        return opened.read()


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
