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
        if name not in _GZIP and name != "deflate":
            raise BadBody(f"it has the content coding {name[:20]!a}, which was not asked for")
        pieces = _decompressed(pieces, limit, gzip=name in _GZIP)
    yield from pieces


def _decompressed(pieces: Iterable[bytes], limit: int, *, gzip: bool) -> Iterator[bytes]:
    """Decompress any number of members of gzip (RFC 1952, section 2.2), or one stream of deflate.

    Deflate has the zlib header that RFC 9110 asks for, or none, as some servers send it.
    """
    engine = None
    size = members = 0
    for piece in pieces:
        data = piece
        while data:
            if engine is None:
                data = data.lstrip(b"\0") if members else data  # a body may be padded
                if not data or (members and not gzip):
                    break
                raw = not (gzip or _has_header(data))
                engine = zlib.decompressobj(_GZIP_WINDOW if gzip else -zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
            try:
                out = engine.decompress(data, _PIECE)
            except zlib.error as error:
                raise BadBody(f"its compressed data is broken ({error})") from error
            size += len(out)
            if size > limit:
                raise OverflowError
            if out:
                yield out
            data = engine.unused_data if engine.eof else engine.unconsumed_tail
            if engine.eof:
                engine, members = None, members + 1
    if engine is not None:
        raise BadBody("its compressed data is incomplete")


def _has_header(data: bytes) -> bool:
    """Say whether the first byte is that of RFC 1950: the method deflate, and a window that there is."""
    return data[0] & 0x8F == 0x08  # noqa: PLR2004
