"""Decompression of bodies in steps of bounded size.

Rule: pure. No step makes more than a piece, and what comes out of any one step, also in between, is never more than
the limit: a small body that would become a large one ends here.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

_PIECE: Final = 2**16
_MOST: Final = 2
"""Codings on top of each other."""

_GZIP: Final = frozenset({"gzip", "x-gzip"})
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


class BadBody(ValueError):
    """The body is not what it says; the message says how."""


def decoded(pieces: Iterable[bytes], codings: str, limit: int) -> Iterator[bytes]:
    """Yield a body as it was before `codings`, the header Content-Encoding, were put on it.

    Raises:
        BadBody: an unknown coding, or bytes that are not of it.
        OverflowError: a coding came out larger than `limit` bytes.
    """
    named = [name for each in codings.split(",") if (name := each.strip().lower()) not in {"", "identity"}]
    if len(named) > _MOST:
        raise BadBody(f"it is compressed {len(named)} times")
    for name in reversed(named):
        if name in _GZIP:
            pieces = _gunzipped(pieces, limit)
        elif name == "deflate":
            pieces = _inflated(pieces, limit)
        else:
            raise BadBody(f"it has the content coding {name[:20]!a}, which was not asked for")
    yield from pieces


def _gunzipped(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Decompress gzip, any number of members (RFC 1952, section 2.2)."""
    engine = zlib.decompressobj(_GZIP_WINDOW)
    size = members = 0
    fresh = True
    for piece in pieces:
        data = piece
        while data:
            if fresh and members and not (data := data.lstrip(b"\0")):  # a body may be padded
                break
            out, data, ended = _step(engine, data)
            fresh = False
            size += len(out)
            if size > limit:
                raise OverflowError
            if out:
                yield out
            if ended:
                engine, fresh, members = zlib.decompressobj(_GZIP_WINDOW), True, members + 1
    if not fresh:
        raise BadBody("its compressed data is incomplete")


def _inflated(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Decompress deflate, with the zlib header that RFC 9110 asks for or without, as some servers send it."""
    engine = None
    size = 0
    ended = False
    for piece in pieces:
        data = piece
        while data and not ended:
            if engine is None:
                engine = zlib.decompressobj(zlib.MAX_WBITS if _has_header(data) else -zlib.MAX_WBITS)
            out, data, ended = _step(engine, data)
            size += len(out)
            if size > limit:
                raise OverflowError
            if out:
                yield out
    if engine is not None and not ended:
        raise BadBody("its compressed data is incomplete")


def _has_header(data: bytes) -> bool:
    """Say whether the first byte is that of RFC 1950: the method deflate, and a window that there is."""
    return data[0] & 0x8F == 0x08  # noqa: PLR2004


def _step(engine: "zlib._Decompress", data: bytes) -> tuple[bytes, bytes, bool]:
    """Return at most a piece of output, the input that is left, and whether the stream has ended."""
    try:
        out = engine.decompress(data, _PIECE)
    except zlib.error as error:
        raise BadBody(f"its compressed data is broken ({error})") from error
    return out, engine.unused_data if engine.eof else engine.unconsumed_tail, engine.eof
