"""Images and documents that a person sends along: read here, where their paths are meant, and told by their content.

Rule: what a line names as `@PATH` goes along if it is a file of such a type; any other word stays as it is typed, and
`root_files` looks at it.
"""

import binascii
import os
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, Final

from supervisor.errors import ConfigError
from supervisor.system.safe_files import AT_ONCE, read_bytes
from workers.wire.media_types import DOCUMENT, HEAD, MEDIA_LIMIT, TYPES, type_of

_NAMED: Final = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"\n]+)\"|(\S+))")
_ENDINGS: Final = ".,;:!?)"
"""What may follow a path in a sentence."""
_TOGETHER: Final = 3 * 2**22 - 2**18
"""Bytes that one prompt can carry: a line of the protocol holds 16 MiB, and base64 takes a third more."""


def words_in(text: str) -> list[tuple[str, ...]]:
    """Return what a line names as `@PATH`; where what follows a path may belong to it, with and without that."""
    return [(quoted,) if quoted else (bare, bare.rstrip(_ENDINGS)) for quoted, bare in _NAMED.findall(text)]


def named_in(text: str) -> list[str]:
    """Return the paths of images and documents that a line names."""
    found: dict[str, None] = {}
    for words in words_in(text):
        paths = (path for path in map(os.path.expanduser, words) if type_at(path))
        found |= dict.fromkeys(islice(paths, 1))
    return list(found)


def type_at(path: str) -> str:
    """Return the type of an image or a document; "" where there is none at that path."""
    try:
        file = os.open(path, os.O_RDONLY | AT_ONCE)
    except (OSError, ValueError):
        return ""
    try:
        return type_of(os.pread(file, HEAD, 0))
    except OSError:  # no file, but a pipe or a directory
        return ""
    finally:
        os.close(file)


def blocks_of(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Return files as blocks of a prompt.

    Raises:
        ConfigError: one cannot be read, is of another type, or they are too large.
    """
    blocks: list[dict[str, Any]] = []
    left = _TOGETHER
    for path in paths:
        try:
            data = read_bytes(Path(path), MEDIA_LIMIT)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"{path!r} cannot be sent along: {why}.") from error
        media_type, uri = type_of(data), Path(os.path.abspath(path)).as_uri()
        if not media_type:
            raise ConfigError(f"{path!r} cannot be sent along: it is not {TYPES}.")
        left -= len(data)
        if left < 0:
            raise ConfigError(f"{path!r} cannot be sent along: together they have more than {_TOGETHER} bytes.")
        encoded = binascii.b2a_base64(data, newline=False).decode()
        if media_type == DOCUMENT:
            resource = {"uri": uri, "mimeType": media_type, "blob": encoded}
            blocks.append({"type": "resource", "resource": resource})
        else:
            blocks.append({"type": "image", "data": encoded, "mimeType": media_type, "uri": uri})
    return blocks
