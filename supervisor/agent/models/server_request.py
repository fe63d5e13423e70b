"""A question to a model's server besides its replies: one blocking request, for programs without an event loop.

Rule: of the environment nothing counts, no redirect is followed, and what is read is bounded. The headers, and with
them the key, go to that server alone.
"""

import http.client
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from supervisor.agent.models.retry import without_key
from supervisor.agent.models.server import Server, basic, tls

_LARGEST: Final = 8 * 2**20
"""Bytes of an answer: the longest lists of models have one."""


class ServerAnswer(NamedTuple):
    """What a server said."""

    status: int
    content: bytes


def ask_server(server: Server, path: str, headers: Mapping[str, str], timeout: float) -> ServerAnswer:
    """Return the answer to a GET of `path` below the server's address; `timeout` is in seconds, for each wait.

    A name and a password of the address go before what the headers say of authorization.

    Raises:
        OSError: no connection.
        ValueError: this is no address of a server, or its answer is larger than any.
        HTTPException: what answers speaks no HTTP.
    """
    url, by = urlsplit(server.url), urlsplit(server.proxy)
    host, port = (by.hostname or "", by.port or 80) if server.proxy else (url.hostname or "", url.port)
    path = f"{url.path.rstrip('/')}{path}"
    headers = {**headers, **({"authorization": server.authorization} if server.authorization else {})}
    to_proxy = {"proxy-authorization": basic(server.proxy)} if basic(server.proxy) else {}
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=tls(server))
        if server.proxy:
            connection.set_tunnel(url.hostname or "", url.port, to_proxy)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        if server.proxy:
            path, headers = f"http://{url.netloc}{path}", headers | to_proxy
    try:
        connection.request("GET", path, headers={name: value for name, value in headers.items() if value})
        answer = connection.getresponse()
        content = answer.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError("its answer is larger than any list of models")
        return ServerAnswer(answer.status, content)
    finally:
        connection.close()


def failure_words(error: Exception, server: Server, *secrets: str) -> str:
    """Return why `ask_server` failed, without anything secret."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return without_key(said, *secrets, *server.secrets)
