"""Answers of a web server on loopback: honest bodies, slow ones, bombs, and bytes that are no HTTP.

Rule: one row a kind, named as in tests/corpus/urls.json, which makes the pieces that are sent. Whatever stops that
(the client has gone, the server is closed) is an OSError, which ends the connection and nothing else. Nothing large is
ever made in memory: a bomb is one compressed block, sent again and again.

A page is {"status": 200, "headers": {...} or [[name, value], ...], "body": {KIND: parameter}}; every key is optional.
"""

import base64
import binascii
import gzip
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Any, Final

Page = Mapping[str, Any]
Pieces = Iterable[bytes]

OK: Final[Page] = {"status": 200, "headers": {"content-type": "text/plain"}, "body": {"text": "OK"}}

_BLOCK: Final = 2**20
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_ZLIB_HEADER: Final = b"\x78\xda"


class Peer:
    """One connection: `send` raises OSError when the client has gone, `wait` when the server closes."""

    def __init__(
        self, connection: socket.socket, closing: threading.Event, gates: dict[int, threading.Barrier]
    ) -> None:
        self.connection = connection
        self._closing = closing
        self._gates = gates

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def wait(self, seconds: float) -> None:
        """Pass time, as a slow server does."""
        if self._closing.wait(seconds):
            raise ConnectionAbortedError

    def say_nothing(self) -> None:
        """Return when the client has gone."""
        while self.connection.recv(2**16):
            continue

    def meet(self, others: int) -> None:
        """Return when as many requests as `others` are waiting here at the same time."""
        try:
            self._gates.setdefault(others, threading.Barrier(others)).wait(60)
        except threading.BrokenBarrierError:
            raise ConnectionAbortedError from None

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise ConnectionResetError


def head(page: Page, *more: tuple[str, str]) -> bytes:
    """Return the status line and the headers; those of the page replace ours of the same name."""
    given = page.get("headers", {})
    pairs = [(name, value) for name, value in (given.items() if isinstance(given, Mapping) else given)]
    names = {name.lower() for name, _ in pairs}
    ours = [("content-type", "text/plain"), ("connection", "close"), *more]
    lines = [f"HTTP/1.1 {page.get('status', 200)} As said"]
    lines += [f"{name}: {value}" for name, value in [*pairs, *(each for each in ours if each[0] not in names)]]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n"


def answer(page: Page, peer: Peer) -> None:
    """Write a page's answer; the connection is the caller's to close."""
    ((kind, parameter),) = dict(page.get("body") or {"text": ""}).items()
    if kind == "meet":
        peer.meet(parameter)
    for piece in BODIES[kind](page, parameter):
        peer.send(piece)
        if kind.startswith("dribble"):
            peer.wait(1 / parameter["bytes_per_s"])
    if kind in ENDS:
        ENDS[kind](peer)


@lru_cache(maxsize=4)
def nested(depth: int, size: int) -> bytes:
    """Return `size` zeros within as many gzips as `depth`."""
    data = b"".join(_zeros(size, _GZIP_HEADER))
    for _ in range(depth - 1):
        data = gzip.compress(data)
    return data


def _whole(page: Page, body: bytes, *more: tuple[str, str]) -> Pieces:
    return [head(page, ("content-length", str(len(body))), *more) + body]


def _cut_off(page: Page, declared: int, sent: bytes) -> Pieces:
    return [head(page, ("content-length", str(declared))) + sent]


def _repeat(page: Page, parameter: tuple[str, int]) -> Pieces:
    unit, times = parameter[0].encode(), parameter[1]
    yield head(page, ("content-length", str(len(unit) * times)))
    yield from _cut(unit * max(1, _BLOCK // len(unit)), len(unit) * times)


def _zeros_in(coding: str, header: bytes, page: Page, size: int) -> Pieces:
    return chain([head(page, ("content-encoding", coding))], _zeros(size, header))


def _lines(line: bytes, size: int) -> Pieces:
    """Yield as many lines as fit into `size` bytes, and the end of headers."""
    return chain(_cut(line * 64, size // len(line) * len(line)), [b"\r\n"])


def _chunked(page: Page, *pieces: bytes) -> Pieces:
    return [head(page, ("transfer-encoding", "chunked")), *pieces]


_HELLO: Final = b"\r\nhello\r\n0\r\n"
"""The end of a chunk's head, a chunk of 5 bytes, and the last chunk."""

BODIES: Final[Mapping[str, Callable[[Page, Any], Pieces]]] = {
    "text": lambda page, text: _whole(page, text.encode()),
    "b64": lambda page, encoded: _whole(page, base64.b64decode(encoded)),
    "repeat": _repeat,
    "gzip_text": lambda page, text: _whole(page, gzip.compress(text.encode()), ("content-encoding", "gzip")),
    "gzip_zeros": partial(_zeros_in, "gzip", _GZIP_HEADER),
    "deflate_zeros": partial(_zeros_in, "deflate", _ZLIB_HEADER),
    "gzip_nested": lambda page, sizes: _whole(
        page, nested(*sizes), ("content-encoding", ", ".join(["gzip"] * sizes[0]))
    ),
    "dribble": lambda page, how: chain(_cut_off(page, how["total"], b""), repeat(b"x", how["total"])),
    "dribble_headers": lambda page, how: [bytes([byte]) for byte in head(page, ("x-slow", "y" * how["total"]))],
    "headers_hang": lambda page, _: [head(page).removesuffix(b"\r\n") + b"X-Unfinished: "],
    "never": lambda *_: [],
    "header_bomb": lambda page, size: chain(
        [head(page).removesuffix(b"\r\n")], _lines(b"X-Bomb: " + b"b" * 1014 + b"\r\n", size)
    ),
    "chunked_forever": lambda page, _: chain(_chunked(page), repeat(b"10000\r\n" + b"c" * 2**16 + b"\r\n")),
    "short": lambda page, how: _cut_off(page, how["declared"], b"s" * how["sent"]),
    "garbage": lambda *_: [b"\x00\xff\xfe this is \x1b[31mno HTTP\r\n\r\n" * 64],
    "chunk_ext_bomb": lambda page, size: chain(
        _chunked(page, b"5;bomb="), _cut(b"e" * _BLOCK, size), [_HELLO, b"\r\n"]
    ),
    "chunk_size": lambda page, digits: _chunked(page, digits.encode("latin-1"), _HELLO, b"\r\n"),
    "trailer_bomb": lambda page, size: chain(
        _chunked(page, b"5", _HELLO), _lines(b"X-Trailer: " + b"t" * 1011 + b"\r\n", size)
    ),
    "status_1xx_forever": lambda *_: repeat(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 16),
    "reset_after": lambda page, size: _cut_off(page, size + 1000, b"r" * size),
    "stall_after": lambda page, size: _cut_off(page, size + 1000, b"s" * size),
    "raw": lambda _, text: [text.encode("latin-1")],
    "meet": lambda page, others: _whole(page, f"{others} met here".encode()),
}

ENDS: Final[Mapping[str, Callable[[Peer], None]]] = {
    "headers_hang": Peer.say_nothing,
    "never": Peer.say_nothing,
    "stall_after": Peer.say_nothing,
    "reset_after": Peer.reset,
}


def _cut(unit: bytes, size: int) -> Iterator[bytes]:
    """Yield `unit` until it is `size` bytes."""
    for _ in range(size // len(unit)):
        yield unit
    yield unit[: size % len(unit)]


def _zeros(size: int, header: bytes) -> Iterator[bytes]:
    """Yield a compressed stream of zeros. A full flush forgets what came before: all blocks are the same bytes."""
    compress = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = compress.compress(bytes(_BLOCK)) + compress.flush(zlib.Z_FULL_FLUSH)
    yield header
    check = 0 if header == _GZIP_HEADER else 1
    for _ in range(size // _BLOCK):
        yield block
        check = _checksum(header)(bytes(_BLOCK), check)
    rest = bytes(size % _BLOCK)
    yield compress.compress(rest) + compress.flush(zlib.Z_FINISH)
    check = _checksum(header)(rest, check)
    yield struct.pack("<II", check, size % 2**32) if header == _GZIP_HEADER else struct.pack(">I", check)


def _checksum(header: bytes) -> Callable[[bytes, int], int]:
    return binascii.crc32 if header == _GZIP_HEADER else zlib.adler32
