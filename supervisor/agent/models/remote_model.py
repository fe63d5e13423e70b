"""A model behind HTTP, whatever its server speaks.

Rule: retries are ours, because a person sees them; event streams are decoded by us, because SDKs drop events that carry
no name and let through strings that are not Unicode; and no exception but ModelError leaves `reply`. What a request and
an answer look like is the wire format's to say (`wire_format.py`).

    ModelRequest -> WireFormat.body -> HTTP -> ReplyReader -> Reply
                                        |  a RequestFailure: show(Retrying), sleep, again; or ModelError
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from supervisor.agent.models.answering_model import AnsweringModel
from supervisor.agent.models.joined_pieces import JoinedPieces
from supervisor.agent.models.model import ModelRequest, Progress, Reply, Retrying
from supervisor.agent.models.model_http import HttpClient, RefusedError, RequestHead, Requests, UnansweredError, connect
from supervisor.agent.models.request_window import RequestWindow
from supervisor.agent.models.retry import (
    HINTS,
    RETRIED,
    WHOLE_SECRET,
    RequestFailure,
    RetryPolicy,
    delay_in,
    is_retried,
    requested_delay,
    take_keys_out,
    without_key,
)
from supervisor.agent.models.server import server_at
from supervisor.agent.models.server_errors import error_body, kind_of_refusal, words_of
from supervisor.agent.models.server_limits import NOTHING_LEARNED, ServerLimits
from supervisor.agent.models.wire_format import Decoder, ReplyReader, WireFormat
from supervisor.errors import ConfigError, ModelError

if TYPE_CHECKING:
    import httpx2

    from supervisor.agent.models.adjustment import Adjustment

DEFAULT_RETRIES: Final = RetryPolicy()
_UNACCEPTABLE: Final = frozenset({400, 404, 422})
"""Statuses of answers to requests that the server may take in another form."""
MAX_STREAM: Final = 64 * 1024 * 1024
"""Bytes that one reply may take on the wire; the longest real ones stay below a tenth of it."""
DRAIN_TIMEOUT: Final = 0.1
"""Seconds to wait for the end of a body whose reply is complete, so that the connection can be used again."""


@dataclass(repr=False, eq=False)
class RemoteModel:
    """A Model that a server has.

    Resource handling: it owns connections; the caller ends with `aclose`.

    Raises:
        ConfigError: the key or the URL cannot be one.
    """

    name: str
    """What the person chose, as in `--model`."""
    api_key: str
    """Sent to `base_url` and nowhere else; removed from every message."""
    base_url: str
    """The server; what is asked stands below it."""
    wire: WireFormat
    """What it speaks."""
    _: KW_ONLY
    provider: str = "anthropic"
    """Whose replies it takes back as they were sent."""
    served_as: str = ""
    """The model, as the server calls it; "" where that is its name."""
    key_variable: str = "the key"
    """Where the key comes from, for people."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What requests carry besides."""
    proxy: str = ""
    """The URL of the proxy that requests go through; "" for none."""
    ca_file: str = ""
    """Certificates that are trusted besides the system's; "" for none."""
    connect_timeout: float = 10.0
    """Seconds until a connection must stand."""
    idle_timeout: float = 120.0
    """Seconds that the server may be silent; every byte counts, pings too."""
    rest_timeout: float = 5.0
    """Seconds that the rest of an answer may take, once the server has said why it stopped, or that it refuses."""
    answer_timeout: float = 3600.0
    """Seconds within which an answer must end, however little of it the server sends."""
    retries: RetryPolicy = DEFAULT_RETRIES
    """How often and how late a failed request is made again."""
    chance: Callable[[], float] = random.random
    """A number in [0, 1) to spread the retries with."""
    clock: Callable[[], float] = time.time
    """Seconds since 1970, to read an HTTP date with."""
    learned: ServerLimits = NOTHING_LEARNED
    """What the server has said of this model's limits, where its format asks or an answer says so."""
    window: RequestWindow = field(default_factory=RequestWindow)
    """How many requests its server has at once."""

    def __post_init__(self) -> None:
        if not self.api_key or not self.api_key.isascii() or not self.api_key.isprintable() or " " in self.api_key:
            raise ConfigError(f"The API key is empty or has characters that no key has: check {self.key_variable}.")
        self._server = server_at(self.base_url, self.proxy, self.ca_file)
        self._host, self._model = self._server.shown, self.served_as or self.name
        long = (each for each in self.headers.values() if len(each) >= WHOLE_SECRET)
        self._secrets = (self.api_key, *long, *self._server.secrets)
        self._loading = trio.Lock()
        self._requests: Requests | None = None
        self._adjustments: Sequence[Adjustment] = ()

    def __repr__(self) -> str:
        return f"<RemoteModel {self.name} at {self._host}>"

    async def aclose(self) -> None:
        """Close the connections. The next reply would open new ones."""
        requests, self._requests = self._requests, None
        if requests is not None:
            for client in requests.clients:
                await requests.close(client)

    async def warm(self) -> None:
        """Import the library now, in a thread, so that the first reply need not wait for it.

        Raises:
            ModelError: the library cannot be imported, or its client cannot be made.
        """
        await self._ready()

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        requests = await self._ready()
        attempt = began = 0
        while True:
            attempt += 1
            try:
                async with self.window.slot() as began, requests.client() as client:
                    return await self._attempt(requests, client, request, show)
            except requests.faults as error:
                failure = self._failure(requests, error)
                if failure.kind == "rate_limited":
                    self.window.limited(began)
                delay = self.retries.delay(failure, attempt, self.chance())
                if delay is None:
                    words, passes = self._last_words(failure, attempt), failure.kind in RETRIED
                    told = failure.retry_after if passes else None
                    raise ModelError(failure.kind, words, billed=failure.billed, retry_after=told) from error
            show(Retrying(attempt, failure.kind, failure.message, delay, failure.billed))
            await trio.sleep(delay)

    async def _ready(self) -> Requests:
        if self._requests is not None:
            return self._requests
        async with self._loading:
            if self._requests is None:
                self._requests = await trio.to_thread.run_sync(self._connect, abandon_on_cancel=True)
            return self._requests

    def _connect(self) -> Requests:
        def head(http: "httpx2.AsyncClient") -> RequestHead:
            made = self.wire.head(http, self._server, self.api_key, self._model)
            return made._replace(headers={**made.headers, **self.headers})

        limits = {"connect_timeout": self.connect_timeout, "idle_timeout": self.idle_timeout}
        return connect(self._server, self._secrets, head, **limits)

    async def _attempt(
        self, requests: Requests, client: HttpClient, request: ModelRequest, show: Callable[[Progress], None]
    ) -> Reply:
        """Make the request once, and again at once in the form that the server takes, which is then remembered."""
        plain = self.wire.body(request, self._model, self.provider)
        rows = [each for each in self.wire.adjustments if not (request.counted and each.unbounded)]
        made = [each for each in self._adjustments if each in rows]
        while True:
            body = plain
            for each in made:
                body = each.adjusted(body)
            try:
                reply = await self._ask(requests, client, body, show)
            except RefusedError as refused:
                left = [each for each in rows if each not in made and refused.status in _UNACCEPTABLE]
                found = next((each for each in left if each.helps(refused.text, body)), None)
                if found is None:
                    raise
                made = [each for each in rows if each in made or each is found]
            else:
                self._adjustments = [each for each in made if each.lasting]
                return reply

    async def _ask(
        self, requests: Requests, client: HttpClient, body: dict[str, Any], show: Callable[[Progress], None]
    ) -> Reply:
        """Send a request and read its answer. Cancelled, it closes the connection before it returns."""
        pieces = JoinedPieces(show)
        decoder, reader, answering = self.wire.decoder(), self.wire.reader(pieces.add), AnsweringModel()
        try:
            # As bytes: an SDK would copy and encode a long conversation in ten times the time.
            content = msgspec.json.encode(body)
        except (ValueError, RecursionError) as error:
            raise ModelError("invalid_request", f"the conversation is not valid JSON ({error})") from error
        with trio.move_on_after(self.answer_timeout) as limit:
            answer = await requests.post(client, content, self.rest_timeout)
            async with aclosing(answer):
                await self._read(requests, answer, decoder, reader, answering, pieces)
        if limit.cancelled_caught:
            raise ModelError("bad_response", f"the answer has not ended after {self.answer_timeout:.0f} seconds")
        if reader.complete or reader.stopped:
            return answering.signed(reader.reply(), self.provider, self._model)
        content_type = answer.headers.get("content-type", "of no type")
        if reader.started or content_type.startswith(self.wire.content_type):
            raise ModelError("stream_truncated", "the answer ends before it is complete")
        raise ModelError("bad_response", f"the answer is not {self.wire.answers} but {content_type}")

    async def _read(
        self,
        requests: Requests,
        answer: "httpx2.Response",
        decoder: Decoder,
        reader: ReplyReader,
        answering: AnsweringModel,
        pieces: JoinedPieces,
    ) -> None:
        """Read an answer until it is complete, or has ended; one that has stopped may end, or not, as it likes."""
        chunks, patience, size = answer.aiter_bytes(), 0.0, 0
        try:
            with trio.CancelScope() as rest:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > MAX_STREAM:
                        raise ModelError("bad_response", f"the reply is larger than {MAX_STREAM} bytes")
                    with pieces:
                        for event in (events := decoder.feed(chunk)):
                            answering.see(event.data)
                            reader.feed(event)
                    if reader.complete:
                        patience = DRAIN_TIMEOUT
                        return
                    if reader.stopped and events:
                        rest.deadline = trio.current_time() + self.rest_timeout
                with pieces:
                    for event in decoder.end():
                        reader.feed(event)
        except requests.breaks:
            if not reader.stopped:
                raise
        finally:
            # Read on to the end: only so does the connection serve the next request, and the generators
            # beneath leave their tidying to the garbage collector unless they end from within.
            with trio.move_on_after(patience), suppress(*requests.faults):
                async for _ in chunks:
                    pass

    def _failure(self, requests: Requests, error: Exception) -> RequestFailure:
        """Say what an exception of `_attempt` means, and take the key out of all that it says."""
        take_keys_out(error, *self._secrets)
        if isinstance(error, ModelError):
            return RequestFailure(error.kind, f"{self._host}: {error}", is_retried(error.kind, {}))
        if isinstance(error, RefusedError):
            return self._refusal(error)
        cause = error.__cause__ or error
        fates, failed = (requests.unanswered, cause) if isinstance(error, UnansweredError) else (requests.fates, error)
        kind, words = next((kind, words) for fate, kind, words in fates if isinstance(failed, fate))
        detail = str(cause) or type(cause).__name__
        billed = not isinstance(failed, requests.unsent)
        return RequestFailure(kind, f"{self._host} {words}: {detail}", is_retried(kind, {}), billed=billed)

    def _refusal(self, refused: RefusedError) -> RequestFailure:
        """Say what an answer with an error status means."""
        body = error_body(refused.content)
        said = words_of(body) or refused.text
        said = without_key(said, *self._secrets) or "no reason given"
        if refused.elsewhere:
            said = f"it says to ask {refused.elsewhere} instead, which is not followed, as the key is for this server"
        kind = kind_of_refusal(refused.status, said, body)
        delay = requested_delay(refused.headers, self.clock(), limited=kind == "rate_limited")
        return RequestFailure(
            kind,
            f"{self._host} answered HTTP {refused.status}: {said}",
            is_retried(kind, refused.headers),
            delay_in(body) if delay is None else delay,
            billed=False,
        )

    def _last_words(self, failure: RequestFailure, attempt: int) -> str:
        sentence = failure.message if failure.message.endswith((".", "!", "?")) else failure.message + "."
        if failure.retried and self.retries.exceeds_patience(failure):
            return f"{sentence} It asks to wait {failure.retry_after:.0f} seconds before the next try."
        tries = f"Tried {attempt} times." if attempt > 1 else ""
        return " ".join(part for part in (sentence, tries, HINTS.get(failure.kind, "")) if part)
