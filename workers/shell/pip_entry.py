"""An entry of pip's cache of responses, and the wheel that it may hold, under the name that the wheel gives itself.

Rule: nothing of it is trusted: what is no wheel, or is not called as one, is left where it is.
"""

import encodings.cp437  # noqa: F401 - of names in wheels, which a locked worker cannot import
import io
import re
import zipfile
from contextlib import suppress
from typing import Final

import msgspec

from workers.shell.cache_table import LINKS, is_kept

_METADATA: Final = 2**20
_PIPS: Final = b"cc=4,"
"""How an entry of pip's cache of responses begins (CacheControl's format 4, msgpack)."""


def wheel_in(entry: bytes) -> tuple[str, bytes]:
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
