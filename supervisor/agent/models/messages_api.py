"""Claude, or whatever else speaks Anthropic's Messages API, as a Model.

Rule: the only importer of `anthropic`, and only when it is first needed: the import takes a second. The SDK
does what a provider's SDK is good for: headers, authentication, connections, TLS. Retries are ours, because a
person sees them; the event stream is ours (`stream.py`), because the SDK drops events that carry no name and
lets through strings that are not Unicode; and no exception but ModelError leaves `reply`.

    Request -> body -> SDK -> HTTP -> EventDecoder -> Accumulator -> Reply
                        |  a Failure: show(Retrying), sleep, again; or ModelError
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import trio

from supervisor.agent.models.model import Message, ModelRequest, Progress, Reply, Retrying
from supervisor.agent.models.retry import (
    HINTS,
    RequestFailure,
    RetryPolicy,
    is_retried,
    kind_of_status,
    requested_delay,
    without_key,
)
from supervisor.agent.models.stream import Accumulator, EventDecoder
from supervisor.errors import ConfigError, ModelError, ModelErrorKind

if TYPE_CHECKING:
    import anthropic

DEFAULT_RETRIES: Final = RetryPolicy()
DRAIN_TIMEOUT: Final = 0.1
"""Seconds to wait for the end of a body whose reply is complete, so that the connection can be used again."""

_UNUSABLE: Final[Sequence[tuple[type[Exception], str]]] = (
    (OSError, "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be loaded ({error})"),
    (ImportError, "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names a SOCKS proxy, which needs: pip install socksio"),
    (ValueError, "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is not the URL of a proxy ({error})"),
)
"""What in the environment keeps the HTTP client from being made."""

_CACHED: Final[Mapping[str, Any]] = {"type": "ephemeral"}
_NO_TOOL: Final[Mapping[str, Any]] = {
    "name": "no_tool",
    "description": "No tool can be called now.",
    "input_schema": {"type": "object", "properties": {}},
}
"""Stands in where no tool is offered any more: the API refuses a history with calls in it and no tools."""
_NEVER_CACHED: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks that the API refuses to mark for its cache."""


@dataclass(frozen=True)
class _Sdk:
    """The library, once it is imported, and its client."""

    client: "anthropic.AsyncAnthropic"
    headers: Mapping[str, "str | anthropic.Omit"]
    status_error: "type[anthropic.APIStatusError]"
    fates: Sequence[tuple[type[Exception], ModelErrorKind, str]]
    """Which exception means what; the first match wins."""
    faults: tuple[type[Exception], ...]
    """Every exception that an attempt can end in."""


class AnthropicModel:
    """A Model behind the Messages API.

    Args:
        name: the model, as the API calls it.
        api_key: sent to `base_url` and nowhere else; removed from every message.
        base_url: any server with `/v1/messages` below it.
        max_tokens: the longest reply that is asked for.
        connect_timeout: seconds until a connection must stand.
        idle_timeout: seconds that the server may be silent; every byte counts, pings too.
        retries: how often and how late a failed request is made again.
        chance: a number in [0, 1) to spread the retries with.
        clock: seconds since 1970, to read an HTTP date with.

    Resource handling: it owns connections; use it as `async with`, or call `aclose`.

    Raises:
        ConfigError: the key or the URL cannot be one.
    """

    def __init__(
        self,
        name: str,
        api_key: str,
        base_url: str,
        *,
        max_tokens: int = 8192,
        connect_timeout: float = 10.0,
        idle_timeout: float = 120.0,
        retries: RetryPolicy = DEFAULT_RETRIES,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise ConfigError("The API key is empty or has characters that no key has: check ANTHROPIC_API_KEY.")
        self._name = name
        self._api_key = api_key
        self._base_url = base_url
        self._host = _host(self._base_url)
        self._max_tokens = max_tokens
        self._connect_timeout = connect_timeout
        self._idle_timeout = idle_timeout
        self._retries = retries
        self._chance = chance
        self._clock = clock
        self._loading = trio.Lock()
        self._sdk: _Sdk | None = None

    def __repr__(self) -> str:
        return f"<AnthropicModel {self._name} at {self._host}>"

    @property
    def name(self) -> str:
        """What the person chose, as in `--model`."""
        return self._name

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. The next reply would open new ones."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await sdk.client.close()

    async def warm(self) -> None:
        """Import the library now, in a thread, so that the first reply need not wait for it.

        Raises:
            ModelError: the library cannot be imported, or its client cannot be made.
        """
        await self._ready()

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        """Return the reply to `request`, calling `show` as it arrives.

        Raises:
            ModelError: there was no reply, after every sensible retry.
        """
        sdk = await self._ready()
        body = self._body(request)
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(sdk, body, show)
            except sdk.faults as error:
                failure = self._failure(sdk, error)
                delay = self._retries.delay(failure, attempt, self._chance())
                if delay is None:
                    raise ModelError(failure.kind, self._last_words(failure, attempt)) from error
            show(Retrying(attempt, failure.kind, failure.message, delay))
            await trio.sleep(delay)

    async def _ready(self) -> _Sdk:
        async with self._loading:
            if self._sdk is None:
                self._sdk = await trio.to_thread.run_sync(self._load, abandon_on_cancel=True)
            return self._sdk

    def _load(self) -> _Sdk:
        """Import the library and make the client; slow, so it runs in a thread.

        Raises:
            ModelError: whatever was wrong: both read the environment, and say so with exceptions of all kinds.
        """
        try:
            import anthropic
            import httpx2
        except Exception as error:
            hint = "reinstall it with pip install anthropic"
            raise ModelError("api_error", f"The anthropic library cannot be imported ({error}): {hint}.") from error
        timeout = httpx2.Timeout(self._idle_timeout, connect=self._connect_timeout)
        try:
            # Made by ourselves: where this fails, the one that the SDK makes complains once more on standard error.
            http = anthropic.DefaultAsyncHttpxClient(timeout=timeout)
        except httpx2.InvalidURL as error:  # whose text may be a piece of a password
            raise self._unusable(ValueError("not a URL"), _UNUSABLE) from error
        except Exception as error:
            raise self._unusable(error, _UNUSABLE) from error
        try:
            client = anthropic.AsyncAnthropic(
                api_key=self._api_key, base_url=self._base_url, max_retries=0, timeout=timeout, http_client=http
            )
            _ = client.messages  # imports what a request needs
            # the SDK adds headers from ANTHROPIC_CUSTOM_HEADERS: they may not replace the key
            headers: Mapping[str, str | anthropic.Omit]
            headers = {"Authorization": anthropic.omit, "X-Api-Key": anthropic.omit, **client.auth_headers}
        except httpx2.InvalidURL as error:
            raise ModelError("connection", f"{self._host} is not an address ({error}).") from error
        except Exception as error:
            raise self._unusable(error, ()) from error
        return _Sdk(
            client=client,
            headers=headers,
            status_error=anthropic.APIStatusError,
            fates=(
                (anthropic.APITimeoutError, "timeout", "did not answer in time"),
                (anthropic.APIConnectionError, "connection", "cannot be reached"),
                (anthropic.AnthropicError, "api_error", "could not be asked"),
                (httpx2.TimeoutException, "timeout", "fell silent in the middle of its answer"),
                (httpx2.DecodingError, "bad_response", "sent an answer that cannot be unpacked"),
                (httpx2.HTTPError, "stream_truncated", "broke off in the middle of its answer"),
            ),
            faults=(ModelError, anthropic.AnthropicError, httpx2.HTTPError),
        )

    def _unusable(self, error: Exception, causes: Sequence[tuple[type[Exception], str]]) -> ModelError:
        said = without_key(str(error), self._api_key).rstrip(".")
        words = next((words for fate, words in causes if isinstance(error, fate)), type(error).__name__ + " ({error})")
        return ModelError("connection", f"{self._host} cannot be asked: {words.format(error=said)}.")

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the request's JSON, with two marks: up to there the provider keeps it for the next step."""
        body: dict[str, Any] = {
            "model": self._name,
            "max_tokens": self._max_tokens,
            "messages": _with_last_marked(request.messages),
        }
        tools = list(request.tools)
        if request.system:
            # tools come before the system prompt in what is cached, so this mark covers both
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        elif tools:
            tools[-1] = {**tools[-1], "cache_control": _CACHED}
        if tools:
            body["tools"] = tools
        elif any(map(_has_calls, request.messages)):
            body |= {"tools": [_NO_TOOL], "tool_choice": {"type": "none"}}
        return body

    async def _attempt(self, sdk: _Sdk, body: dict[str, Any], show: Callable[[Progress], None]) -> Reply:
        """Make the request once. Cancelled, it closes the connection before it returns."""
        decoder, accumulator = EventDecoder(), Accumulator(show)
        create = sdk.client.messages.with_streaming_response.create
        async with AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(create(**body, stream=True, extra_headers=sdk.headers))
            except (ValueError, RecursionError) as error:
                raise ModelError("invalid_request", f"the conversation is not valid JSON ({error})") from error
            chunks, patience = answer.http_response.aiter_bytes(), 0.0
            try:
                async for chunk in chunks:
                    for event in decoder.feed(chunk):
                        accumulator.feed(event)
                    if accumulator.complete:
                        patience = DRAIN_TIMEOUT
                        return accumulator.reply()
            finally:
                # Read on to the end: only so does the connection serve the next request, and the generators
                # beneath leave their tidying to the garbage collector unless they end from within.
                with trio.move_on_after(patience), suppress(*sdk.faults):
                    async for _ in chunks:
                        pass
        content_type = answer.headers.get("content-type", "of no type")
        if accumulator.started or content_type.startswith("text/event-stream"):
            raise ModelError("stream_truncated", "the answer ends before it is complete")
        raise ModelError("bad_response", f"the answer is not a stream of events but {content_type}")

    def _failure(self, sdk: _Sdk, error: Exception) -> RequestFailure:
        """Say what an exception of `_attempt` means, and take the key out of all that it says."""
        for link in _chain(error):
            link.args = tuple(without_key(word, self._api_key) if isinstance(word, str) else word for word in link.args)
        if isinstance(error, ModelError):
            return RequestFailure(error.kind, f"{self._host}: {error}", is_retried(error.kind, {}))
        if isinstance(error, sdk.status_error):
            return self._refusal(error)
        kind, words = next((kind, words) for fate, kind, words in sdk.fates if isinstance(error, fate))
        cause = error.__cause__ or error
        detail = str(cause) or type(cause).__name__
        return RequestFailure(kind, f"{self._host} {words}: {detail}", is_retried(kind, {}))

    def _refusal(self, error: "anthropic.APIStatusError") -> RequestFailure:
        """Say what an answer with an error status means."""
        match error.body:
            case {"error": {"message": str(words)}} | {"error": str(words)} | {"message": str(words)}:
                said = words
            case _:
                said = error.response.text
        headers = error.response.headers
        said = without_key(said, self._api_key) or "no reason given"
        kind = kind_of_status(error.status_code, said)
        return RequestFailure(
            kind,
            f"{self._host} answered HTTP {error.status_code}: {said}",
            is_retried(kind, headers),
            requested_delay(headers, self._clock()),
        )

    def _last_words(self, failure: RequestFailure, attempt: int) -> str:
        sentence = failure.message if failure.message.endswith((".", "!", "?")) else failure.message + "."
        if failure.retried and self._retries.exceeds_patience(failure):
            return f"{sentence} It asks to wait {failure.retry_after:.0f} seconds before the next try."
        tries = f"Tried {attempt} times." if attempt > 1 else ""
        return " ".join(part for part in (sentence, tries, HINTS.get(failure.kind, "")) if part)


def _host(base_url: str) -> str:
    """Return the part of a URL that may be shown: no user, no password, no path."""
    try:
        parts = urlsplit(base_url)
        _ = parts.port  # raises for a number that is no port
    except ValueError as error:
        raise ConfigError(f"The base URL is not a URL ({error}).") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or not base_url.isprintable() or " " in base_url:
        raise ConfigError("The base URL must look like https://host or http://host:port.")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what led to it: all that a traceback prints."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def _with_last_marked(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the last block marked for the cache; the caller's own stay as they are."""
    marked = list(messages)
    if marked and isinstance(content := marked[-1]["content"], list) and content:
        last = content[-1]
        if last["type"] not in _NEVER_CACHED:
            marked[-1] = {**marked[-1], "content": [*content[:-1], {**last, "cache_control": _CACHED}]}
    return marked


def _has_calls(message: Message) -> bool:
    """Say whether a message calls tools; one that is a text alone does not."""
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == "tool_use" for block in content)
