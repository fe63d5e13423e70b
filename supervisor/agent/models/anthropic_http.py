"""Sends requests to the Messages API, with the Anthropic SDK's headers and HTTP clients; says what their errors mean.

Rule: the only importer of `anthropic`, in a thread: the import takes a second. All that the SDK does well is made once:
headers, authentication, connections, TLS. Its own way of sending makes them anew for each request, for a third of a
millisecond.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from supervisor.agent.models.retry import without_key
from supervisor.agent.models.server import Server, tls
from supervisor.errors import ModelError, ModelErrorKind
from supervisor.system.garbage import importing

if TYPE_CHECKING:
    import anthropic
    import httpx2

_UNUSABLE: Final[Sequence[tuple[type[Exception], str]]] = (
    (OSError, "the certificates that `ca_file` in [network] names cannot be loaded ({error})"),
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
"""As the SDK has them."""
_CLOSE_TIMEOUT: Final = 1.0
"""Seconds that an HTTP client has to close."""


class UnansweredError(Exception):
    """There was no answer; its cause says why."""


class RefusedError(Exception):
    """An answer with an error status, read to its end."""

    def __init__(self, answer: "httpx2.Response") -> None:
        super().__init__(f"HTTP {answer.status_code}")
        self.status, self.headers = answer.status_code, answer.headers
        self.content, self.text = answer.content, answer.text
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


@dataclass(frozen=True)
class Sdk:
    """What the library makes, once it is imported."""

    clients: list[HttpClient]
    """The first for everybody; others while it has enough to do."""
    another: "Callable[[], httpx2.AsyncClient]"
    request: "Callable[[bytes], httpx2.Request]"
    """Makes a request of its body."""
    unanswered: Sequence[tuple[type[Exception], ModelErrorKind, str]]
    """Which exception means what before there is an answer; the first match wins."""
    fates: Sequence[tuple[type[Exception], ModelErrorKind, str]]
    """The same within an answer."""
    faults: tuple[type[Exception], ...]
    """Every exception that an attempt can end in."""

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
        """Close a client's connections."""
        with trio.move_on_after(_CLOSE_TIMEOUT, shield=True):
            await client.http.aclose()

    async def post(self, client: HttpClient, body: bytes) -> "httpx2.Response":
        """Send a request; return the answer once its headers are there, for the caller to read and close."""
        try:
            answer = await client.http.send(self.request(body), stream=True)
        except Exception as error:
            raise UnansweredError from error
        if not answer.is_success:
            async with aclosing(answer):
                await answer.aread()
            raise RefusedError(answer)
        return answer


def load(api_key: str, server: Server, *, connect_timeout: float, idle_timeout: float) -> Sdk:
    """Import the library and make what requests need; slow, so it runs in a thread.

    Args:
        api_key: sent to that server and nowhere else: no redirect is followed.
        server: anything with `/v1/messages` below its address.
        connect_timeout: seconds until a connection must stand.
        idle_timeout: seconds that the server may be silent.

    Raises:
        ModelError: whatever was wrong: the library says so with exceptions of all kinds.
    """
    try:
        with importing("anthropic"):
            import anthropic
            import httpx2
    except Exception as error:
        hint = "reinstall it with pip install anthropic"
        raise ModelError("api_error", f"The anthropic library cannot be imported ({error}): {hint}.") from error
    secrets, host = (api_key, *server.secrets), server.shown
    timeout = httpx2.Timeout(idle_timeout, connect=connect_timeout)
    try:
        # With a transport of its own, a client has no proxy of the environment.
        another = partial(_client, tls(server.ca_file), server.proxy, timeout)
        http = another()
    except httpx2.InvalidURL as error:  # whose text may be a piece of a password
        raise _unusable(host, secrets, ValueError("not a URL"), _UNUSABLE) from error
    except Exception as error:
        raise _unusable(host, secrets, error, _UNUSABLE) from error
    try:
        client = anthropic.AsyncAnthropic(
            api_key=api_key, base_url=server.url, max_retries=0, timeout=timeout, http_client=http
        )
        vars(client)["_custom_headers"] = {}  # those of ANTHROPIC_CUSTOM_HEADERS
        url = client.base_url.copy_with(raw_path=client.base_url.raw_path + b"v1/messages")
        headers = _headers(client, http)
        if server.authorization:
            headers.update({"Authorization": server.authorization, "X-Api-Key": api_key})
    except httpx2.InvalidURL as error:
        raise ModelError("connection", f"{host} is not an address ({error}).") from error
    except Exception as error:
        raise _unusable(host, secrets, error, ()) from error
    limits = {"timeout": timeout.as_dict()}
    return Sdk(
        [HttpClient(http)],
        another,
        lambda body: httpx2.Request("POST", url, headers=headers, content=body, extensions=limits),
        unanswered=(
            (httpx2.TimeoutException, "timeout", "did not answer in time"),
            (Exception, "connection", "cannot be reached"),
        ),
        fates=(
            (httpx2.TimeoutException, "timeout", "fell silent in the middle of its answer"),
            (httpx2.DecodingError, "bad_response", "sent an answer that cannot be unpacked"),
            (httpx2.HTTPError, "stream_truncated", "broke off in the middle of its answer"),
        ),
        faults=(ModelError, UnansweredError, RefusedError, httpx2.HTTPError),
    )


def _client(context: ssl.SSLContext, proxy: str, timeout: "httpx2.Timeout") -> "httpx2.AsyncClient":
    """Make an HTTP client that takes nothing from the environment, with the SDK's limits."""
    import anthropic
    import httpx2

    transport = httpx2.AsyncHTTPTransport(
        verify=context,
        trust_env=False,
        limits=anthropic.DEFAULT_CONNECTION_LIMITS,
        proxy=proxy or None,
        socket_options=_KEPT_ALIVE,
    )
    return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)


def _headers(client: "anthropic.AsyncAnthropic", http: "httpx2.AsyncClient") -> "httpx2.Headers":
    """Return what every request begins with."""
    headers = http.headers.copy()
    headers.update({name: value for name, value in client.default_headers.items() if isinstance(value, str)})
    headers.update({**client.auth_headers, "Content-Type": "application/json"})
    return headers


def _unusable(
    host: str, secrets: Sequence[str], error: Exception, causes: Sequence[tuple[type[Exception], str]]
) -> ModelError:
    said = without_key(str(error), *secrets).rstrip(".")
    words = next((words for fate, words in causes if isinstance(error, fate)), type(error).__name__ + " ({error})")
    return ModelError("connection", f"{host} cannot be asked: {words.format(error=said)}.")
