"""One client's connection: lines in, lines out, requests both ways.

Rule: nobody waits for a client. What it shall hear goes into its outbox; one that lets the outbox overflow is told so
and dropped. What it says is bounded too: the length of a line, the requests it may have under way. Whatever it sends,
it gets an answer, and the connection lives on.
"""

import logging
import select
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import trio

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.acp.jsonrpc import LineBuffer, TooLong
from supervisor.daemon.protocol.outbox import Outbox
from supervisor.errors import ConfigError, JournalError, StrongroomError

_log: Final = logging.getLogger("strongroom.daemon")

REQUEST_LIMIT: Final = 256
"""Requests of one client under way. Above the concurrency of a batch."""
_CHUNK: Final = 2**16
_PAUSE_EVERY: Final = 100
"""Messages of a batch after which others get their turn."""
_LEFT: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
"""What says that the client has left."""
_LAST_WORDS: Final = 2.0
"""Seconds that a dropped client has to read why."""


class RequestError(StrongroomError):
    """A request cannot be done; the client is told. The arguments are those of `jsonrpc.fault`."""

    def __init__(self, code: int, message: str, kind: str, **details: Any) -> None:
        super().__init__(message)
        self.error = jsonrpc.fault(code, message, kind, **details)


Serve = Callable[["ClientRequest"], Awaitable[Any]]
Notify = Callable[["Connection", jsonrpc.Notification], None]


class Connection:
    """A client.

    Args:
        stream: connected; closed when `run` returns.
        serve: returns the result of a request, or raises `StrongroomError`.
        notify: takes a notification.
    """

    def __init__(self, stream: trio.SocketStream, serve: Serve, notify: Notify) -> None:
        self.client: schema.Implementation | None = None
        self.capabilities = schema.ClientCapabilities()
        self.variables: dict[str, str] | None = None
        """What it told of the person's environment, for all sessions that it opens."""
        self.keys: dict[str, str] = {}
        """Keys that it told, of the variables that hold some: for the sessions that it opens, and in memory alone."""
        self.offered: set[str] = set()
        """The pages that it was asked to open."""
        self.initialized = False
        self.mute = False
        """It says no more, not even an answer, and still listens."""
        self.closed = trio.Event()
        self._stream = stream
        self._serve = serve
        self._notify = notify
        self.outbox = Outbox()
        self._closing = False
        self._running: dict[jsonrpc.Id, ClientRequest] = {}
        self._pending: dict[str, _PendingRequest] = {}
        self._number = 0
        self._scope = trio.CancelScope()

    @property
    def knows_extensions(self) -> bool:
        """Whether the client takes notifications of ours and may answer with an edited input."""
        return (self.capabilities.meta or {}).get(extensions.CLIENT) is True

    @property
    def answers_only(self) -> bool:
        """Whether the client wants no updates of sessions."""
        return (self.capabilities.meta or {}).get(extensions.ANSWERS_ONLY) is True

    @property
    def name(self) -> str:
        """What the client calls itself."""
        return self.client.name if self.client else "a client"

    async def run(self) -> None:
        """Serve until the client leaves, is dropped, or the caller is cancelled."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send_all, nursery.cancel_scope)
                    await self._receive_all(nursery)
        finally:
            self.outbox.end()
            for pending in self._pending.values():
                pending.settle(None)
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)
            self.closed.set()

    # --- out ----------------------------------------------------------------------------------------------------

    def send(self, line: bytes) -> None:
        """Queue a line; a client whose queue is full is dropped."""
        if not self.outbox.put(line) and not self.outbox.ending:
            _log.warning("dropped %s: it does not read", self.name)
            why = "You read too slowly; connect again and load the session: nothing of it is lost."
            self.outbox.end(jsonrpc.notification(extensions.DROPPED, {"reason": why}))
            self._scope.deadline = trio.current_time() + _LAST_WORDS

    def finish_answered(self) -> None:
        """Answer the requests under way, then close."""
        self._closing = True
        if not self._running:
            self.outbox.end()

    async def _send_all(self, everything: trio.CancelScope) -> None:
        with suppress(*_LEFT):  # what it asked for goes on
            await self.outbox.send_to(self._stream)
        everything.cancel()

    # --- in -----------------------------------------------------------------------------------------------------

    async def _receive_all(self, nursery: trio.Nursery) -> None:
        lines = LineBuffer(jsonrpc.LINE_LIMIT)
        while chunk := await self._receive():
            for line in lines.feed(chunk):
                if isinstance(line, TooLong):
                    message = f"A line of more than {jsonrpc.LINE_LIMIT} bytes; it was skipped. Send less at once."
                    self.send(jsonrpc.failure(None, jsonrpc.fault(jsonrpc.INVALID_REQUEST, message, "too_large")))
                    continue
                for number, each in enumerate(jsonrpc.decode(line), 1):
                    if self.outbox.ending:
                        return
                    self._take(each, nursery)
                    if isinstance(each, jsonrpc.Request):
                        await _let_begin()
                    elif number % _PAUSE_EVERY == 0:
                        await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
        if self._is_gone():
            nursery.cancel_scope.cancel()
        else:  # it only says no more: whoever has asked still gets the answer
            self.mute = True
            for pending in self._pending.values():
                pending.settle(None)
            self.finish_answered()

    async def _receive(self) -> bytes:
        with suppress(*_LEFT):
            return bytes(await self._stream.receive_some(_CHUNK))
        return b""

    def _is_gone(self) -> bool:
        """Say whether the client has closed both ways (poll(2), POLLHUP), not only its own."""
        poll = select.poll()
        poll.register(self._stream.socket.fileno(), select.POLLHUP)
        with suppress(OSError):  # EINVAL where this process may have no descriptors at all any more
            return bool(poll.poll(0))
        return False

    def _take(self, message: jsonrpc.Message | jsonrpc.Bad, nursery: trio.Nursery) -> None:
        match message:
            case jsonrpc.Bad():
                self._settle(jsonrpc.Response(message.id, None, message.error))  # it may be meant as an answer
                self.send(jsonrpc.failure(message.id, message.error))
            case jsonrpc.Request() if message.id in self._running:
                why = f"A request {message.id!r} is under way already."
                self.send(jsonrpc.failure(message.id, jsonrpc.fault(jsonrpc.INVALID_REQUEST, why, "duplicate_id")))
            case jsonrpc.Request() if len(self._running) >= REQUEST_LIMIT:
                why = f"{REQUEST_LIMIT} requests are under way; wait for an answer."
                self.send(jsonrpc.failure(message.id, jsonrpc.fault(jsonrpc.INVALID_REQUEST, why, "too_many_requests")))
            case jsonrpc.Request():
                request = self._running[message.id] = ClientRequest(self, message)
                nursery.start_soon(self._answer, message.id, request)
            case jsonrpc.Notification(method="$/cancel_request"):
                self._cancel(message)
            case jsonrpc.Notification():
                self._notify(self, message)
            case jsonrpc.Response():
                self._settle(message)

    def _settle(self, response: jsonrpc.Response) -> None:
        if (pending := self._pending.pop(str(response.id), None)) is not None:
            pending.settle(response)

    async def _answer(self, number: jsonrpc.Id, request: "ClientRequest") -> None:
        then = None
        line = jsonrpc.failure(number, jsonrpc.fault(jsonrpc.CANCELLED, "The request was cancelled.", "cancelled"))
        try:
            with request.scope:
                line = jsonrpc.result(number, await self._serve(request))
                then = request.then
        except StrongroomError as error:
            line = jsonrpc.failure(number, as_fault(error))
        except Exception:  # noqa: BLE001 - the client's boundary: a bug fails the request, not the daemon
            _log.exception("internal error in %s", request.method)
            why = "An internal error; the daemon's log has the details."
            line = jsonrpc.failure(number, jsonrpc.fault(jsonrpc.INTERNAL_ERROR, why, "internal"))
        finally:
            del self._running[number]
        self.send(line)
        if then is not None:
            then()
        if self._closing and not self._running:
            self.outbox.end()

    def _cancel(self, message: jsonrpc.Notification) -> None:
        params = jsonrpc.decoded(message.params, schema.CancelRequestParams)
        if isinstance(params, schema.CancelRequestParams) and params.request_id in self._running:
            self._running[params.request_id].cancel()

    # --- requests to the client -----------------------------------------------------------------------------------

    async def send_request(self, method: str, params: Any) -> jsonrpc.Response | None:
        """Send a request and wait for its answer; None when the client has left, or will never answer.

        Cancelling tells the client that no answer is needed any more.
        """
        if self.outbox.ending or self.mute:
            return None
        self._number += 1
        number = f"ask-{self._number}"
        pending = self._pending[number] = _PendingRequest()
        self.send(jsonrpc.request(number, method, params))
        try:
            await pending.answered.wait()
        except trio.Cancelled:
            self.send(jsonrpc.notification("$/cancel_request", schema.CancelRequestParams(request_id=number)))
            raise
        finally:
            self._pending.pop(number, None)
        return pending.answer


async def _let_begin() -> None:
    """Let a request that was just taken run up to its first wait: a cancel right behind it finds something to cancel.

    A task runs in the round after the one in which it was started, or in the same as a first checkpoint's end.
    """
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()


class ClientRequest:
    """A request of a client, while it is served."""

    def __init__(self, client: Connection, message: jsonrpc.Request) -> None:
        self.client = client
        self.method = message.method
        self.params = message.params
        self.scope = trio.CancelScope()
        self.cancel: Callable[[], None] = self.scope.cancel
        """Called for `$/cancel_request`; whoever serves it puts something else here, where it ends by itself then."""
        self.then: Callable[[], None] | None = None
        """Called once the result is on its way."""


class _PendingRequest:
    """A request of ours that the client has not answered yet."""

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.answer: jsonrpc.Response | None = None

    def settle(self, answer: jsonrpc.Response | None) -> None:
        self.answer = answer
        self.answered.set()


def as_fault(error: StrongroomError) -> jsonrpc.ErrorObject:
    """Return an exception as the client is told it."""
    match error:
        case RequestError():
            return error.error
        case ConfigError():
            return jsonrpc.fault(jsonrpc.INVALID_PARAMS, str(error), "config")
        case JournalError():
            return jsonrpc.fault(jsonrpc.INTERNAL_ERROR, str(error), error.kind)
        case _:
            return jsonrpc.fault(jsonrpc.INTERNAL_ERROR, str(error), type(error).__name__)


def turn_away(stream: trio.SocketStream, kind: str, message: str) -> None:
    """Say why, as far as the socket takes it at once, and close."""
    line = jsonrpc.failure(None, jsonrpc.fault(jsonrpc.INVALID_REQUEST, message, kind))
    with suppress(OSError), socket.socket(fileno=stream.socket.detach()) as plain:
        plain.send(line)
