"""HTTP requests to models' servers: clients, connections, and what their errors mean.

Rule: the only user of httpx2, which the Anthropic SDK stands on; imported in a thread. Nothing is taken from the
environment and no redirect is followed. What all requests to one server begin with is made once (`RequestHead`).
"""

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from supervisor.agent.models.retry import without_key
from supervisor.agent.models.server import Server, tls
from supervisor.errors import ModelError, ModelErrorKind
from supervisor.system.garbage import importing

if TYPE_CHECKING:
    import httpx2

_UNUSABLE: Final[Sequence[tuple[type[Exception], str]]] = (
    (OSError, "the certificates of `ca_file` in the configuration cannot be loaded ({error})"),
    (ValueError, "`proxy` in [network] is not the URL of a proxy ({error})"),
)
"""What in the configuration keeps the HTTP client from being made."""
_KEPT_S: Final = 5.0
"""Seconds that a client without requests is kept, as long as its connections are: a crowd that asks again needs them,
and a new one costs a handshake."""
_AT_ONCE: Final = 8
"""Requests that one HTTP client has at once: for each it looks at all of its connections, twice."""
_KEPT_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
)
"""As the SDKs have them."""
_CONNECTIONS: Final = 1000
_IDLE_CONNECTIONS: Final = 100
"""Connections of one client at most, and those that it keeps between two requests; as the SDKs have them."""
_LONGEST_REFUSAL: Final = 2**20
"""Bytes of an answer with an error status that are read."""
_WORDS_READ: Final = 20_000
"""The same, where it is looked for words."""
_CLOSE_TIMEOUT: Final = 1.0
"""Seconds that an HTTP client has to close."""


class UnansweredError(Exception):
    """There was no answer; its cause says why."""


class RefusedError(Exception):
    """An answer with an error status, and the beginning of what it says."""

    def __init__(self, answer: "httpx2.Response", content: bytes) -> None:
        super().__init__(f"HTTP {answer.status_code}")
        self.status, self.headers = answer.status_code, answer.headers
        self.content, self.text = content, content[:_WORDS_READ].decode("utf-8", "replace")
        try:
            self.elsewhere = (
                f"{answer.url.join(answer.headers['location']).host!r}" if answer.has_redirect_location else ""
            )
        except ValueError:
            self.elsewhere = "another server"


@dataclass
class HttpClient:
    """One of the library's, how many requests it has, and when its last one ended (trio's clock)."""

    http: "httpx2.AsyncClient"
    busy: int = 0
    rested_at: float = 0.0


class RequestHead(NamedTuple):
    """What all requests to a server begin with: the URL, and the headers by name."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Requests:
    """The way to one server: HTTP clients, and what an exception of theirs means."""

    clients: list[HttpClient]
    """The first for everybody; others while it has enough to do."""
    another: "Callable[[], httpx2.AsyncClient]"
    request: "Callable[[bytes], httpx2.Request]"
    """Makes a request of its body."""
    unanswered: Sequence[tuple[type[Exception], ModelErrorKind, str]]
    """Which exception means what before there is an answer; the first match wins."""
    fates: Sequence[tuple[type[Exception], ModelErrorKind, str]]
    """The same within an answer."""
    unsent: tuple[type[Exception], ...]
    """Those that end an attempt before the server has the request."""
    faults: tuple[type[Exception], ...]
    """Every exception that an attempt can end in."""

    @property
    def breaks(self) -> tuple[type[Exception], ...]:
        """Every exception of a connection that ends within an answer."""
        return tuple(fate for fate, _, _ in self.fates)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[HttpClient]:
        """Yield an HTTP client for one request; afterwards the last that have had none for long are closed."""
        found = next((each for each in self.clients if each.busy < _AT_ONCE), None)
        if found is None:
            found = HttpClient(self.another())
            self.clients.append(found)
        found.busy += 1
        try:
            yield found
        finally:
            found.busy -= 1
            now = found.rested_at = trio.current_time()
            while len(self.clients) > 1 and not (last := self.clients[-1]).busy and last.rested_at <= now - _KEPT_S:
                await self.close(self.clients.pop())

    async def close(self, client: HttpClient) -> None:
        with trio.move_on_after(_CLOSE_TIMEOUT, shield=True):
            await client.http.aclose()

    async def post(self, client: HttpClient, body: bytes, patience: float) -> "httpx2.Response":
        """Send a request; return the answer once its headers are there, for the caller to read and close.

        Of one with an error status as much is read as comes in `patience` seconds.
        """
        try:
            answer = await client.http.send(self.request(body), stream=True)
        except Exception as error:
            raise UnansweredError from error
        if not answer.is_success:
            async with aclosing(answer):
                raise RefusedError(answer, await _beginning(answer, patience))
        return answer


def connect(
    server: Server,
    secrets: Sequence[str],
    head: "Callable[[httpx2.AsyncClient], RequestHead]",
    *,
    connect_timeout: float,
    idle_timeout: float,
) -> Requests:
    """Import the library and make what requests need; slow, so it runs in a thread.

    Args:
        server: where they go.
        secrets: what no error may say.
        head: makes what they begin with, for a client of that server's.
        connect_timeout: seconds until a connection must stand.
        idle_timeout: seconds that the server may be silent.

    Raises:
        ModelError: whatever was wrong: the library says so with exceptions of all kinds.
    """
    try:
        with importing("httpx2"):
            import httpx2
    except Exception as error:
        hint = "reinstall it with pip install httpx2"
        raise ModelError("api_error", f"The httpx2 library cannot be imported ({error}): {hint}.") from error
    timeout = httpx2.Timeout(idle_timeout, connect=connect_timeout)
    try:
        # With a transport of its own, a client has no proxy of the environment.
        another = partial(_client, tls(server), server.proxy, timeout)
        http = another()
    except httpx2.InvalidURL as error:  # whose text may be a piece of a password
        raise _unusable(server, secrets, ValueError("not a URL"), _UNUSABLE) from error
    except Exception as error:
        raise _unusable(server, secrets, error, _UNUSABLE) from error
    try:
        made = head(http)
        url, headers = httpx2.URL(made.url), http.headers.copy()
        headers.update(made.headers)
    except ModelError:
        raise
    except httpx2.InvalidURL as error:
        raise ModelError("connection", f"{server.shown} is not an address ({error}).") from error
    except Exception as error:
        raise _unusable(server, secrets, error, ()) from error
    limits = {"timeout": timeout.as_dict()}
    return Requests(
        [HttpClient(http)],
        another,
        lambda body: httpx2.Request("POST", url, headers=headers, content=body, extensions=limits),
        unanswered=(
            (httpx2.TimeoutException, "timeout", "did not answer in time"),
            (httpx2.RemoteProtocolError, "connection", "gave no answer that can be read"),
            (Exception, "connection", "cannot be reached"),
        ),
        fates=(
            (httpx2.TimeoutException, "timeout", "fell silent in the middle of its answer"),
            (httpx2.DecodingError, "bad_response", "sent an answer that cannot be unpacked"),
            (httpx2.HTTPError, "stream_truncated", "broke off in the middle of its answer"),
        ),
        unsent=(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError),
        faults=(ModelError, UnansweredError, RefusedError, httpx2.HTTPError),
    )


async def _beginning(answer: "httpx2.Response", patience: float) -> bytes:
    """Return the first bytes of an answer, which may have no end."""
    content = bytearray()
    with trio.move_on_after(patience) as reading:
        async for chunk in answer.aiter_bytes():
            content += chunk
            if len(content) > _LONGEST_REFUSAL:
                reading.cancel()  # no break: the generators beneath are to end from within
    return bytes(content[:_LONGEST_REFUSAL])


def _client(context: ssl.SSLContext, proxy: str, timeout: "httpx2.Timeout") -> "httpx2.AsyncClient":
    """Make an HTTP client that takes nothing from the environment."""
    import httpx2

    transport = httpx2.AsyncHTTPTransport(
        verify=context,
        trust_env=False,
        limits=httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE_CONNECTIONS),
        proxy=proxy or None,
        socket_options=_KEPT_ALIVE,
    )
    return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)


def _unusable(
    server: Server, secrets: Sequence[str], error: Exception, causes: Sequence[tuple[type[Exception], str]]
) -> ModelError:
    said = without_key(str(error), *secrets).rstrip(".")
    words = next((words for fate, words in causes if isinstance(error, fate)), type(error).__name__ + " ({error})")
    return ModelError("connection", f"{server.shown} cannot be asked: {words.format(error=said)}.")
