"""A question to a model's server besides its replies: one blocking request, for programs without an event loop.

Rule: of the environment nothing counts, no redirect is followed, and what is read is bounded. The headers, and with
them the key, go to that server alone.
"""

import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from supervisor.agent.models.retry import without_key
from supervisor.agent.models.server import Server, basic, below, tls

_LARGEST: Final = 8 * 2**20
"""Bytes of an answer: the longest lists of models have one."""


class ServerAnswer(NamedTuple):
    """What a server said."""

    status: int
    content: bytes


def ask_server(server: Server, path: str, headers: Mapping[str, str], timeout: float) -> ServerAnswer:
    """Connect to a server and return its answer to a GET of `path`; `timeout` is in seconds, for each of both.

    A name and a password of the address go before what the headers say of authorization.

    Raises:
        OSError: no connection, or no end of the answer.
        ValueError: this is no address of a server, or no header, or its answer is larger than any.
        HTTPException: what answers speaks no HTTP.
    """
    url, by = urlsplit(server.url), urlsplit(server.proxy)
    host, port = (by.hostname or "", by.port or 80) if server.proxy else (url.hostname or "", url.port)
    where = urlsplit(below(server.url, path))._replace(fragment="")
    target = where._replace(scheme="", netloc="").geturl()
    headers = {**headers, **({"authorization": server.authorization} if server.authorization else {})}
    if not all(value.isprintable() for value in headers.values()):  # which the library would print, escaped
        raise ValueError("the key, or a header, has characters that none has")
    to_proxy = {"proxy-authorization": basic(server.proxy)} if basic(server.proxy) else {}
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=tls(server))
        if server.proxy:
            connection.set_tunnel(url.hostname or "", url.port, to_proxy)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        if server.proxy:
            target, headers = where.geturl(), headers | to_proxy
    try:
        connection.connect()
        with _ended_after(timeout, connection.sock):
            connection.request("GET", target, headers={name: value for name, value in headers.items() if value})
            answer = connection.getresponse()
            content = answer.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError("its answer is larger than any list of models")
        return ServerAnswer(answer.status, content)
    finally:
        connection.close()


@contextmanager
def _ended_after(seconds: float, connection: socket.socket) -> Iterator[None]:
    """End a connection on which there is something after all that time, however little of it comes at once.

    Raises:
        OSError: it was ended.
    """
    passed = threading.Event()

    def end() -> None:
        passed.set()
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if passed.is_set():
            raise TimeoutError(f"its answer has not ended after {seconds:g} s")


def failure_words(error: Exception, server: Server, *secrets: str) -> str:
    """Return why `ask_server` failed, without anything secret."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return without_key(said, *secrets, *server.secrets)
