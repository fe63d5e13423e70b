"""Sends requests to the Messages API, with the Anthropic SDK's headers and HTTP clients; says what their errors mean.

Rule: the only importer of `anthropic`, in a thread: the import takes a second. All that the SDK does well is made once:
headers, authentication, connections, TLS. Its own way of sending makes them anew for each request, for a third of a
millisecond.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from supervisor.agent.models.retry import without_key
from supervisor.errors import ModelError, ModelErrorKind
from supervisor.system.garbage import importing

if TYPE_CHECKING:
    import anthropic
    import httpx2

_UNUSABLE: Final[Sequence[tuple[type[Exception], str]]] = (
    (OSError, "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be loaded ({error})"),
    (ImportError, "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names a SOCKS proxy, which needs: pip install socksio"),
    (ValueError, "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is not the URL of a proxy ({error})"),
)
"""What in the environment keeps the HTTP client from being made."""
_AT_ONCE: Final = 8
"""Requests that one HTTP client has at once: for each it looks at all of its connections, twice."""
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


@dataclass
class HttpClient:
    """One of the library's, and how many requests it has."""

    http: "httpx2.AsyncClient"
    busy: int = 0


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
        """Yield an HTTP client for one request; afterwards all but one of the last that have none are closed."""
        found = next((each for each in self.clients if each.busy < _AT_ONCE), None)
        if found is None:
            found = HttpClient(self.another())
            self.clients.append(found)
        found.busy += 1
        try:
            yield found
        finally:
            found.busy -= 1
            while len(self.clients) > 1 and not (self.clients[-1].busy or self.clients[-2].busy):
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


def load(api_key: str, base_url: str, host: str, *, connect_timeout: float, idle_timeout: float) -> Sdk:
    """Import the library and make what requests need; slow, so it runs in a thread.

    Args:
        api_key: sent to `base_url` and nowhere else.
        base_url: any server with `/v1/messages` below it.
        host: the part of it that may be shown.
        connect_timeout: seconds until a connection must stand.
        idle_timeout: seconds that the server may be silent.

    Raises:
        ModelError: whatever was wrong: both read the environment, and say so with exceptions of all kinds.
    """
    try:
        with importing("anthropic"):
            import anthropic
            import httpx2
    except Exception as error:
        hint = "reinstall it with pip install anthropic"
        raise ModelError("api_error", f"The anthropic library cannot be imported ({error}): {hint}.") from error
    timeout = httpx2.Timeout(idle_timeout, connect=connect_timeout)
    try:
        # Made by ourselves: where this fails, the one that the SDK makes complains once more on standard error.
        another = partial(anthropic.DefaultAsyncHttpxClient, timeout=timeout, verify=httpx2.create_ssl_context())
        http = another()
    except httpx2.InvalidURL as error:  # whose text may be a piece of a password
        raise _unusable(host, api_key, ValueError("not a URL"), _UNUSABLE) from error
    except Exception as error:
        raise _unusable(host, api_key, error, _UNUSABLE) from error
    try:
        client = anthropic.AsyncAnthropic(
            api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout, http_client=http
        )
        url = client.base_url.copy_with(raw_path=client.base_url.raw_path + b"v1/messages")
        headers = _headers(client, http)
    except httpx2.InvalidURL as error:
        raise ModelError("connection", f"{host} is not an address ({error}).") from error
    except UnicodeEncodeError as error:
        message = f"the request cannot be made ({error.reason}): check ANTHROPIC_CUSTOM_HEADERS"
        raise ModelError("invalid_request", f"{host}: {message}.") from error
    except Exception as error:
        raise _unusable(host, api_key, error, ()) from error
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


def _headers(client: "anthropic.AsyncAnthropic", http: "httpx2.AsyncClient") -> "httpx2.Headers":
    """Return what every request begins with. Those of ANTHROPIC_CUSTOM_HEADERS may not replace the key."""
    headers = http.headers.copy()
    headers.update({name: value for name, value in client.default_headers.items() if isinstance(value, str)})
    for name in ("Authorization", "X-Api-Key"):
        headers.pop(name, None)
    headers.update({**client.auth_headers, "Content-Type": "application/json"})
    return headers


def _unusable(host: str, api_key: str, error: Exception, causes: Sequence[tuple[type[Exception], str]]) -> ModelError:
    said = without_key(str(error), api_key).rstrip(".")
    words = next((words for fate, words in causes if isinstance(error, fate)), type(error).__name__ + " ({error})")
    return ModelError("connection", f"{host} cannot be asked: {words.format(error=said)}.")
