"""Parser of the head of one HTTP request to the proxy. Pure.

Rule: strict, and nothing is repaired. A client says CONNECT and a place that is listed, and gets bytes both ways; or it
asks for an http:// URL there, which is passed on as a request of one connection. Whatever follows
the head goes where the head goes: to that one place, so there is nothing to be smuggled.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from workers import url

HEAD: Final = 2**14
"""Bytes of a request's head, at most."""

_END: Final = b"\r\n\r\n"
_LINE: Final = re.compile(r"([A-Z]{1,16}) ([!-~]{1,8192}) HTTP/1\.[01]")
_FIELD: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([\t -~\x80-\xff]*)")
_PLACE: Final = re.compile(r"([^:@/]{1,255}):([1-9][0-9]{0,4})")
_OF_THE_WAY: Final = frozenset({"host", "connection", "keep-alive", "proxy-connection", "proxy-authorization"})
"""Fields that are between the client and us, or are ours to say."""


class ProxyRequest(NamedTuple):
    """Where a client wants to go, and what goes there first."""

    host: str
    """In normal form."""
    port: int
    first: bytes
    tunnel: bool
    """Whether the client is told that the way is open before anything else."""

    @property
    def place(self) -> str:
        """The place as the profile's `network` writes it."""
        return f"{self.host}:{self.port}"


class ProxyDeclined(Exception):
    """The client gets an answer instead of a connection."""

    def __init__(self, status: int, message: str, place: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.place = place
        """Where it wanted to go; empty where it did not say so."""


def parse_request(data: bytes, allowed: Collection[str]) -> ProxyRequest | None:
    """Return what a client wants, None while its head is not complete.

    Args:
        data: what has come from it so far.
        allowed: the places of the profile's `network`.

    Raises:
        Declined: it is no request, or not for one of these places.
    """
    head, end, rest = data.partition(_END)
    if len(head) > HEAD:
        raise ProxyDeclined(431, f"The head of the request has more than {HEAD} bytes.")
    if not end:
        return None
    line, *fields = head.decode("latin-1").split("\r\n")
    found = _LINE.fullmatch(line)
    if found is None:
        raise ProxyDeclined(400, "This is a proxy: send CONNECT host:port HTTP/1.1, or request an http:// URL.")
    pairs = [_FIELD.fullmatch(field) for field in fields]
    if not all(pairs):
        raise ProxyDeclined(400, "A line of the request's head is not a header field.")
    method, target = found.groups()
    try:
        if method == "CONNECT":
            wanted = _tunnel(target, rest)
        else:
            wanted = _request(method, target, [pair.groups() for pair in pairs if pair], rest)
    except url.UrlError as error:
        raise ProxyDeclined(400, str(error)) from error
    if wanted.place not in allowed:
        raise ProxyDeclined(403, f"Not allowed: {wanted.place}. Allowed: {', '.join(allowed)}.", wanted.place)
    return wanted


def proxy_response(status: int, message: str) -> bytes:
    """Return what a client is told instead; the message is in the first line as well, where programs show it."""
    text = " ".join(message.split()).encode("ascii", "replace")
    lines = b"HTTP/1.1 %d %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b\n"
    return lines % (status, text[:_SHOWN], len(text) + 1, text)


OPEN: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
"""What a client is told when its tunnel is open."""

_SHOWN: Final = 200


def _tunnel(target: str, rest: bytes) -> ProxyRequest:
    place = _PLACE.fullmatch(target)
    if place is None or int(place[2]) >= 2**16:
        raise ProxyDeclined(400, f"{target[:80]!r} is not a host and port: send CONNECT example.org:443 HTTP/1.1.")
    return ProxyRequest(url.host_or_address(place[1]), int(place[2]), rest, tunnel=True)


def _request(method: str, target: str, fields: list[tuple[str, ...]], rest: bytes) -> ProxyRequest:
    wanted = url.parse(target, url.host_or_address)
    if wanted.scheme != "http":
        raise ProxyDeclined(400, "Only http:// URLs can be requested like this; use CONNECT for the rest.")
    kept = [f"{name}: {value}" for name, value in fields if name.lower() not in _OF_THE_WAY]
    lines = [
        f"{method} {wanted.target} HTTP/1.1",
        f"host: {wanted.origin.partition('://')[2]}",
        *kept,
        "connection: close",
    ]
    return ProxyRequest(wanted.host, wanted.port, "\r\n".join(lines).encode("latin-1") + _END + rest, tunnel=False)
