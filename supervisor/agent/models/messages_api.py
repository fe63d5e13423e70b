"""Claude, or whatever else speaks Anthropic's Messages API, as a Model.

Rule: retries are ours, because a person sees them; the event stream is ours (`stream.py`), because the SDK drops
events that carry no name and lets through strings that are not Unicode; and no exception but ModelError leaves
`reply`.

    Request -> body -> HTTP -> EventDecoder -> Accumulator -> Reply
                        |  a Failure: show(Retrying), sleep, again; or ModelError
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

import msgspec
import trio

from supervisor.agent.models.anthropic_http import HttpClient, RefusedError, Sdk, UnansweredError, load
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
from supervisor.agent.models.server import server_at
from supervisor.agent.models.stream import Accumulator, EventDecoder
from supervisor.errors import ConfigError, ModelError

DEFAULT_RETRIES: Final = RetryPolicy()
DRAIN_TIMEOUT: Final = 0.1
"""Seconds to wait for the end of a body whose reply is complete, so that the connection can be used again."""

_CACHED: Final[Mapping[str, Any]] = {"type": "ephemeral"}
_NO_TOOL: Final[Mapping[str, Any]] = {
    "name": "no_tool",
    "description": "No tool can be called now.",
    "input_schema": {"type": "object", "properties": {}},
}
"""Stands in where no tool is offered any more: the API refuses a history with calls in it and no tools."""
_NEVER_CACHED: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks that the API refuses to mark for its cache."""


@dataclass(repr=False, eq=False)
class AnthropicModel:
    """A Model behind the Messages API.

    Resource handling: it owns connections; the caller ends with `aclose`.

    Raises:
        ConfigError: the key or the URL cannot be one.
    """

    name: str
    """The model, as the API calls it; what the person chose, as in `--model`."""
    api_key: str
    """Sent to `base_url` and nowhere else; removed from every message."""
    base_url: str
    """Any server with `/v1/messages` below it."""
    _: KW_ONLY
    proxy: str = ""
    """The URL of the proxy that requests go through; "" for none."""
    ca_file: str = ""
    """Certificates that are trusted besides the system's; "" for none."""
    max_tokens: int = 8192
    """The longest reply that is asked for."""
    connect_timeout: float = 10.0
    """Seconds until a connection must stand."""
    idle_timeout: float = 120.0
    """Seconds that the server may be silent; every byte counts, pings too."""
    retries: RetryPolicy = DEFAULT_RETRIES
    """How often and how late a failed request is made again."""
    chance: Callable[[], float] = random.random
    """A number in [0, 1) to spread the retries with."""
    clock: Callable[[], float] = time.time
    """Seconds since 1970, to read an HTTP date with."""

    def __post_init__(self) -> None:
        if not self.api_key or not self.api_key.isascii() or not self.api_key.isprintable() or " " in self.api_key:
            raise ConfigError("The API key is empty or has characters that no key has: check ANTHROPIC_API_KEY.")
        self._server = server_at(self.base_url, self.proxy, self.ca_file)
        self._host, self._secrets = self._server.shown, (self.api_key, *self._server.secrets)
        self._loading = trio.Lock()
        self._sdk: Sdk | None = None

    def __repr__(self) -> str:
        return f"<AnthropicModel {self.name} at {self._host}>"

    async def aclose(self) -> None:
        """Close the connections. The next reply would open new ones."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            for client in sdk.clients:
                await sdk.close(client)

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
                async with sdk.client() as client:
                    return await self._attempt(sdk, client, body, show)
            except sdk.faults as error:
                failure = self._failure(sdk, error)
                delay = self.retries.delay(failure, attempt, self.chance())
                if delay is None:
                    raise ModelError(failure.kind, self._last_words(failure, attempt)) from error
            show(Retrying(attempt, failure.kind, failure.message, delay))
            await trio.sleep(delay)

    async def _ready(self) -> Sdk:
        if self._sdk is not None:
            return self._sdk
        async with self._loading:
            if self._sdk is None:
                self._sdk = await trio.to_thread.run_sync(self._load, abandon_on_cancel=True)
            return self._sdk

    def _load(self) -> Sdk:
        return load(self.api_key, self._server, connect_timeout=self.connect_timeout, idle_timeout=self.idle_timeout)

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the request's JSON, with two marks: up to there the provider keeps it for the next step."""
        body: dict[str, Any] = {
            "model": self.name,
            "max_tokens": self.max_tokens,
            "stream": True,
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

    async def _attempt(
        self, sdk: Sdk, client: HttpClient, body: dict[str, Any], show: Callable[[Progress], None]
    ) -> Reply:
        """Make the request once. Cancelled, it closes the connection before it returns."""
        decoder, accumulator = EventDecoder(), Accumulator(show)
        try:
            # As bytes: the SDK would copy and encode a long conversation in ten times the time.
            content = msgspec.json.encode(body)
        except (ValueError, RecursionError) as error:
            raise ModelError("invalid_request", f"the conversation is not valid JSON ({error})") from error
        answer = await sdk.post(client, content)
        async with aclosing(answer):
            chunks, patience = answer.aiter_bytes(), 0.0
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

    def _failure(self, sdk: Sdk, error: Exception) -> RequestFailure:
        """Say what an exception of `_attempt` means, and take the key out of all that it says."""
        for link in _chain(error):
            link.args = tuple(
                without_key(word, *self._secrets) if isinstance(word, str) else word for word in link.args
            )
        if isinstance(error, ModelError):
            return RequestFailure(error.kind, f"{self._host}: {error}", is_retried(error.kind, {}))
        if isinstance(error, RefusedError):
            return self._refusal(error)
        cause = error.__cause__ or error
        fates, failed = (sdk.unanswered, cause) if isinstance(error, UnansweredError) else (sdk.fates, error)
        kind, words = next((kind, words) for fate, kind, words in fates if isinstance(failed, fate))
        detail = str(cause) or type(cause).__name__
        return RequestFailure(kind, f"{self._host} {words}: {detail}", is_retried(kind, {}))

    def _refusal(self, refused: RefusedError) -> RequestFailure:
        """Say what an answer with an error status means."""
        try:
            body = msgspec.json.decode(refused.content)
        except (ValueError, RecursionError):
            body = None
        match body:
            case {"error": {"message": str(words)}} | {"error": str(words)} | {"message": str(words)}:
                said = words
            case _:
                said = refused.text
        said = without_key(said, *self._secrets) or "no reason given"
        if refused.elsewhere:
            said = f"it says to ask {refused.elsewhere} instead, which is not followed, as the key is for this server"
        kind = kind_of_status(refused.status, said)
        return RequestFailure(
            kind,
            f"{self._host} answered HTTP {refused.status}: {said}",
            is_retried(kind, refused.headers),
            requested_delay(refused.headers, self.clock()),
        )

    def _last_words(self, failure: RequestFailure, attempt: int) -> str:
        sentence = failure.message if failure.message.endswith((".", "!", "?")) else failure.message + "."
        if failure.retried and self.retries.exceeds_patience(failure):
            return f"{sentence} It asks to wait {failure.retry_after:.0f} seconds before the next try."
        tries = f"Tried {attempt} times." if attempt > 1 else ""
        return " ".join(part for part in (sentence, tries, HINTS.get(failure.kind, "")) if part)


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
