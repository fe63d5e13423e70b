"""The format of undo packs: what one call replaced, as a file.

Rule: the format has a version and tags of its own, so that packs stay readable however the wire changes. A line with
the version comes first, then frames: a `PackedName` for each name that the call changed, parents first, and after one
that is `kept` its content in `PackedContent`s. Last comes one `PackEnd` with a digest of all bytes before it: a pack
that was cut, even between two frames, or of which any byte has changed, is damaged. A pack of version 1 begins with its
first frame; its tags are those that messages had then, and its parts have the id of their call.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from workers.changes.effects import NodeState
from workers.wire import frames

_MAGIC: Final = b"strongroom pack "
HEADER: Final = _MAGIC + b"2\n"
_AHEAD: Final = 2**14
"""Bytes that are read at once, at least: most frames are much smaller."""


class Broken(Exception):
    """It is no whole pack. The text says what is wrong with it."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class PackedName(_Part, frozen=True, tag="name"):
    """One name before the call and after it. If `kept`, the content of the file before follows."""

    path: str
    before: NodeState | None = None
    after: NodeState | None = None
    raw_path: bytes = b""
    attributes: dict[str, bytes] = {}
    kept: bool = False
    gist: bytes = b""
    """As `messages.Original` has it."""


class PackedContent(_Part, frozen=True, tag="content"):
    """The next part of the content of the last name."""

    data: bytes


class PackEnd(_Part, frozen=True, tag="end"):
    """The last frame: the SHA-256 of all bytes before it."""

    digest: bytes


class _OriginalV1(PackedName, frozen=True, tag="Original", kw_only=True):
    id: int


class _PieceV1(PackedContent, frozen=True, tag="Piece", kw_only=True):
    id: int


class _EndV1(PackEnd, frozen=True, tag="End"):
    pass


_encoder: Final = msgspec.msgpack.Encoder()
_current: Final = msgspec.msgpack.Decoder(PackedName | PackedContent | PackEnd)
_first: Final = msgspec.msgpack.Decoder(_OriginalV1 | _PieceV1 | _EndV1)


def encoded(part: PackedName | PackedContent | PackEnd) -> bytes:
    """Return a part as a frame of a pack."""
    return frames.framed(_encoder.encode(part))


class PackReader:
    """Reads an open pack, from its beginning or from where a frame begins; `at` is how far it has come."""

    def __init__(self, file: int, at: int = 0) -> None:
        """Read the version.

        Raises:
            Broken: it is another one than this program knows.
        """
        self._file = file
        self._ahead, self._used = b"", 0
        """What was read at once, and how much of it has been returned."""
        self.at = 0
        header = self._read(len(HEADER))
        if header.startswith(_MAGIC) and header != HEADER:
            raise Broken("it has a format that this version of strongroom does not know")
        self._decoder: msgspec.msgpack.Decoder[Any] = _current if header == HEADER else _first
        self._begin = header if header == HEADER else b""
        if at or not self._begin:
            self.at, self._ahead, self._used = at, b"", 0

    def parts(self) -> Iterator[PackedName | PackedContent]:
        """Yield what comes before the end, each when `at` is where it ends.

        Raises:
            Broken: there is no end, it is not the end of what comes before it, or something comes after it.
        """
        digest, ended = hashlib.sha256(self._begin), False
        try:
            for payload in frames.payloads(self._read):
                part = frames.decoded(self._decoder, payload)
                if ended:
                    raise Broken("it goes on after its end")
                if isinstance(part, PackEnd):
                    if part.digest != digest.digest():
                        raise Broken("it is not what was written")
                    ended = True
                    continue
                digest.update(frames.framed(payload))
                yield part
        except frames.FrameError as error:
            raise Broken(str(error)) from error
        if not ended:
            raise Broken("its end is missing")

    def contents(self, size: int) -> Iterator[bytes]:
        """Yield the content that begins here, of a pack that was read before."""
        payloads = frames.payloads(self._read)
        while size:
            part = frames.decoded(self._decoder, next(payloads))
            assert isinstance(part, PackedContent), "it was when the pack was read"
            size -= len(part.data)
            yield part.data

    def _read(self, size: int) -> bytes:
        if self._used + size > len(self._ahead):
            self._ahead, self._used = self._ahead[self._used :], 0
            while (have := len(self._ahead)) < size:
                more = os.pread(self._file, max(size - have, _AHEAD), self.at + have)
                if not more:
                    break
                self._ahead += more
        found = self._ahead[self._used : self._used + size]
        self._used += len(found)
        self.at += len(found)
        return found
