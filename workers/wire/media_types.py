"""The types of images and documents that models are shown, told by how content begins. Pure.

Rule: what something is, its content says; a name or a sender only claims it. Both sides read this alike: a worker that
finds such content, the worker that decodes it, and the supervisor, which never does.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MEDIA_LIMIT: Final = 15 * 2**19
"""Bytes of one image or document: what fits a frame (8 MiB) with room for the rest, and a line of the protocol."""

HEAD: Final = 16
"""Bytes of content that say what it is."""

DOCUMENT: Final = "application/pdf"

_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", DOCUMENT),
)
_RIFF: Final = b"RIFF"
_WEBP: Final = b"WEBP"

_ENDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "png": "image/png",
        "jpg": "image/jpeg",
        "jpeg": "image/jpeg",
        "gif": "image/gif",
        "webp": "image/webp",
        "pdf": DOCUMENT,
    }
)

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "image/png": "PNG image",
        "image/jpeg": "JPEG image",
        "image/gif": "GIF image",
        "image/webp": "WebP image",
        DOCUMENT: "PDF document",
    }
)
"""What people call each type. There are no others."""

TYPES: Final = "PNG, JPEG, GIF, WebP or PDF"


def type_of(head: bytes) -> str:
    """Return the type of content that begins so; "" for any other."""
    if head[:4] == _RIFF and head[8:12] == _WEBP:
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if head.startswith(beginning)), "")


def claimed_by(name: str) -> str:
    """Return the type that the ending of a file's name claims; "" where it claims none."""
    return _ENDINGS.get(name.rpartition(".")[2].lower(), "") if "." in name else ""
