"""Answers of a web server on loopback: honest bodies, slow ones, bombs, and bytes that are no HTTP.

Rule: one row a kind, named as in tests/corpus/urls.json; each is given the page and a `Peer`, and writes. Whatever
stops it (the client has gone, the server is closed) is an OSError, which ends the connection and nothing else. Nothing
large is ever made in memory: a bomb is one compressed block, sent again and again.

A page is {"status": 200, "headers": {...} or [[name, value], ...], "body": {KIND: parameter}}; every key is optional.
"""

import base64
import binascii
import gzip
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final

Page = Mapping[str, Any]

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
            self._gates.setdefault(others, threading.Barrier(others)).wait(30)
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
    BODIES[kind](page, parameter, peer)


def _whole(page: Page, body: bytes, peer: Peer, *more: tuple[str, str]) -> None:
    peer.send(head(page, ("content-length", str(len(body))), *more) + body)


def _text(page: Page, text: str, peer: Peer) -> None:
    _whole(page, text.encode(), peer)


def _b64(page: Page, encoded: str, peer: Peer) -> None:
    _whole(page, base64.b64decode(encoded), peer)


def _repeat(page: Page, parameter: tuple[str, int], peer: Peer) -> None:
    text, times = parameter
    unit, size = text.encode(), len(text.encode()) * times
    peer.send(head(page, ("content-length", str(size))))
    for chunk in _cut(unit * max(1, _BLOCK // len(unit)), size):
        peer.send(chunk)


def _gzip_text(page: Page, text: str, peer: Peer) -> None:
    _whole(page, gzip.compress(text.encode()), peer, ("content-encoding", "gzip"))


def _zeros_in(coding: str, header: bytes, page: Page, size: int, peer: Peer) -> None:
    peer.send(head(page, ("content-encoding", coding)))
    for chunk in _zeros(size, header):
        peer.send(chunk)


def _gzip_nested(page: Page, parameter: tuple[int, int], peer: Peer) -> None:
    depth, size = parameter
    _whole(page, nested(depth, size), peer, ("content-encoding", ", ".join(["gzip"] * depth)))


def _dribble(page: Page, parameter: Mapping[str, float], peer: Peer) -> None:
    peer.send(head(page, ("content-length", str(parameter["total"]))))
    for _ in range(int(parameter["total"])):
        peer.send(b"x")
        peer.wait(1 / parameter["bytes_per_s"])


def _dribble_headers(page: Page, parameter: Mapping[str, float], peer: Peer) -> None:
    for byte in head(page, ("x-slow", "y" * int(parameter["total"]))):
        peer.send(bytes([byte]))
        peer.wait(1 / parameter["bytes_per_s"])


def _headers_hang(page: Page, _: object, peer: Peer) -> None:
    peer.send(head(page).removesuffix(b"\r\n") + b"X-Unfinished: ")
    peer.say_nothing()


def _never(_page: Page, _: object, peer: Peer) -> None:
    peer.say_nothing()


def _header_bomb(page: Page, size: int, peer: Peer) -> None:
    line = b"X-Bomb: " + b"b" * 1014 + b"\r\n"
    peer.send(head(page).removesuffix(b"\r\n"))
    for chunk in _cut(line * 64, size // len(line) * len(line)):
        peer.send(chunk)
    peer.send(b"\r\n")


def _chunked(page: Page) -> bytes:
    return head(page, ("transfer-encoding", "chunked"))


def _chunked_forever(page: Page, _: object, peer: Peer) -> None:
    peer.send(_chunked(page))
    while True:
        peer.send(b"10000\r\n" + b"c" * 2**16 + b"\r\n")


def _short(page: Page, parameter: Mapping[str, int], peer: Peer) -> None:
    peer.send(head(page, ("content-length", str(parameter["declared"]))) + b"s" * parameter["sent"])


def _garbage(_page: Page, _: object, peer: Peer) -> None:
    peer.send(b"\x00\xff\xfe this is \x1b[31mno HTTP\r\n\r\n" * 64)


def _chunk_ext_bomb(page: Page, size: int, peer: Peer) -> None:
    peer.send(_chunked(page) + b"5;bomb=")
    for chunk in _cut(b"e" * _BLOCK, size):
        peer.send(chunk)
    peer.send(b"\r\nhello\r\n0\r\n\r\n")


def _chunk_size(page: Page, digits: str, peer: Peer) -> None:
    peer.send(_chunked(page) + digits.encode("latin-1") + b"\r\nhello\r\n0\r\n\r\n")


def _trailer_bomb(page: Page, size: int, peer: Peer) -> None:
    peer.send(_chunked(page) + b"5\r\nhello\r\n0\r\n")
    line = b"X-Trailer: " + b"t" * 1011 + b"\r\n"
    for chunk in _cut(line * 64, size // len(line) * len(line)):
        peer.send(chunk)
    peer.send(b"\r\n")


def _status_1xx_forever(_page: Page, _: object, peer: Peer) -> None:
    while True:
        peer.send(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 16)


def _reset_after(page: Page, size: int, peer: Peer) -> None:
    peer.send(head(page, ("content-length", str(size + 1000))) + b"r" * size)
    peer.reset()


def _stall_after(page: Page, size: int, peer: Peer) -> None:
    peer.send(head(page, ("content-length", str(size + 1000))) + b"s" * size)
    peer.say_nothing()


def _raw(_page: Page, text: str, peer: Peer) -> None:
    peer.send(text.encode("latin-1"))


def _meet(page: Page, others: int, peer: Peer) -> None:
    peer.meet(others)
    _text(page, f"{others} met here", peer)


BODIES: Final[Mapping[str, Callable[[Page, Any, Peer], None]]] = {
    "text": _text,
    "b64": _b64,
    "repeat": _repeat,
    "gzip_text": _gzip_text,
    "gzip_zeros": partial(_zeros_in, "gzip", _GZIP_HEADER),
    "deflate_zeros": partial(_zeros_in, "deflate", _ZLIB_HEADER),
    "gzip_nested": _gzip_nested,
    "dribble": _dribble,
    "dribble_headers": _dribble_headers,
    "headers_hang": _headers_hang,
    "never": _never,
    "header_bomb": _header_bomb,
    "chunked_forever": _chunked_forever,
    "short": _short,
    "garbage": _garbage,
    "chunk_ext_bomb": _chunk_ext_bomb,
    "chunk_size": _chunk_size,
    "trailer_bomb": _trailer_bomb,
    "status_1xx_forever": _status_1xx_forever,
    "reset_after": _reset_after,
    "stall_after": _stall_after,
    "raw": _raw,
    "meet": _meet,
}


@lru_cache(maxsize=4)
def nested(depth: int, size: int) -> bytes:
    """Return `size` zeros within as many gzips as `depth`."""
    data = b"".join(_zeros(size, _GZIP_HEADER))
    for _ in range(depth - 1):
        data = gzip.compress(data)
    return data


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
