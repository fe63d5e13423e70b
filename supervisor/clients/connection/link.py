"""A client's end of a connection to the daemon: requests out, answers and events in.

Rule: one thread reads, and hands everything to the listener in the order in which it came; an answer follows all the
events before it. Any thread may send. A lost connection fails every waiting request at once. Nothing else ends the
reader: neither a message that it cannot understand nor a listener that fails.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.acp.jsonrpc import LineBuffer, TooLong
from supervisor.clients.connection.link_events import (
    ConnectionLost,
    LinkEvent,
    Listener,
    PermissionPrompt,
    PromptWithdrawn,
    decline,
)
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused, JournalError, StrongroomError
from supervisor.system import unix_socket

_log: Final = logging.getLogger("strongroom.client")

_T = TypeVar("_T")
_CHUNK: Final = 2**16
_LINE_LIMIT: Final = 64 * 2**20
"""Bytes of one line from the daemon, which we trust not to exhaust us; a whole tool result fits many times."""


class Link:
    """A connection.

    Args:
        connection: connected; owned from here on.
        listener: is told what happens.
    """

    def __init__(self, connection: socket.socket, listener: Listener) -> None:
        self.daemon: extensions.Daemon | None = None
        self.key_variables: tuple[str, ...] = ()
        """The names of variables whose values the daemon takes as keys."""
        self._socket = connection
        self._listener = listener
        self._sending = threading.Lock()
        self._state = threading.Lock()
        self._waiting: dict[jsonrpc.Id, Future[bytes]] = {}
        self._prompts: dict[jsonrpc.Id, PermissionPrompt] = {}
        self._number = 0
        self._granted = False
        self._refused: StrongroomError | None = None
        self._ended = ""
        for each in schema.Object.__subclasses__():
            msgspec.json.Decoder(each)  # before there is a second thread: msgspec (0.22) can crash in a first decode
        self._reader = threading.Thread(target=self._read, name="strongroom link", daemon=True)
        self._reader.start()

    @property
    def ended(self) -> bool:
        """Whether it is known that nothing more comes."""
        return bool(self._ended)

    def introduce(
        self, name: str, version: str, wait: Callable[["Future[bytes]"], bytes] = Future.result
    ) -> extensions.Daemon:
        """Say who we are; return who the daemon is.

        Args:
            name: of the client.
            version: of the client.
            wait: returns the result of the request's future, or raises where it has waited for long enough.

        Raises:
            StrongroomError: it is no daemon of ours, or speaks another version of the protocol.
        """
        meta = {extensions.CLIENT: True, extensions.ANSWERS_ONLY: self._listener is decline}
        info = schema.Implementation(name=name, version=version)
        params = schema.InitializeParams(schema.VERSION, schema.ClientCapabilities(meta=meta), info)
        result = decoded(wait(self.submit("initialize", params)), schema.InitializeResult)
        try:
            meta = result.meta or {}
            self.daemon = msgspec.convert(meta[extensions.DAEMON], extensions.Daemon)
            self.key_variables = msgspec.convert(meta.get(extensions.KEY_VARIABLES) or (), tuple[str, ...])
        except (KeyError, msgspec.ValidationError) as error:
            raise DaemonRefused("What listens there is no daemon of Strongroom.", "bad_answer") from error
        return self.daemon

    @property
    def is_same_user(self) -> bool:
        """Whether the process at the other end is one of this user, as the kernel says."""
        return unix_socket.peer(self._socket).uid == os.geteuid()

    def request(self, method: str, params: Any, result: type[_T]) -> _T:
        """Send a request and wait for its answer.

        Raises:
            StrongroomError: as `decoded` says.
            KeyboardInterrupt: the request stays sent; its answer is thrown away.
        """
        return decoded(self.submit(method, params).result(), result)

    def submit(
        self, method: str, params: Any, ended: "Callable[[Future[bytes]], object]" = lambda _future: None
    ) -> "Future[bytes]":
        """Send a request; the future gets the result's JSON, for `decoded`, or fails as `request` does.

        One that is too long fails here: the daemon would skip it, and could not say which it was. `ended` is called
        with the future when it has its result, before anything is heard that comes after that.
        """
        future: Future[bytes] = Future()
        future.add_done_callback(ended)
        with self._state:
            self._number += 1
            number = self._number
            if self._ended:
                future.set_exception(self._refused or DaemonLost(self._ended))
                return future
            self._waiting[number] = future
        line = jsonrpc.request(number, method, params)
        if len(line) > jsonrpc.LINE_LIMIT:
            text = f"The request has {len(line)} bytes; at most {jsonrpc.LINE_LIMIT} can be sent. Send less."
            self._settle(jsonrpc.Response(number, None, jsonrpc.fault(jsonrpc.INVALID_PARAMS, text, "too_large")))
        else:
            self._send(line)
        return future

    def notify(self, method: str, params: Any) -> None:
        self._send(jsonrpc.notification(method, params))

    def cancel(self, session: str) -> None:
        """Cancel the session's turn; the prompt's answer will say so."""
        self.notify("session/cancel", schema.SessionParams(session_id=session))

    def abandon(self, request: "Future[bytes]") -> None:
        """Cancel a request that has not been answered; its answer will say so."""
        with self._state:
            number = next((each for each, future in self._waiting.items() if future is request), None)
        if number is not None:
            self.notify("$/cancel_request", schema.CancelRequestParams(request_id=number))

    def close(self) -> None:
        """Leave; what runs in the daemon goes on."""
        self._end("The connection was closed.", tell=False)
        if self._reader is not threading.current_thread():
            self._reader.join()
        self._socket.close()

    def _send(self, line: bytes) -> None:
        try:
            with self._sending:
                self._socket.sendall(line)
        except ConnectionError:
            pass  # the reader finds the end too, behind the daemon's last words
        except OSError as error:
            self._end(f"The daemon is gone: {error.strerror}.")

    def _read(self) -> None:
        lines = LineBuffer(_LINE_LIMIT)
        why = "The daemon has closed the connection."
        try:
            while chunk := self._socket.recv(_CHUNK):
                for line in lines.feed(chunk):
                    if isinstance(line, TooLong):
                        why = "The daemon sent a line without end."
                        return
                    for message in jsonrpc.decode(line):
                        self._take(message)
        except OSError as error:
            why = f"The daemon is gone: {error.strerror}."
        finally:
            self._end(why)

    def _end(self, why: str, *, tell: bool = True) -> None:
        with self._state:
            first, self._ended = not self._ended, self._ended or why
            waiting, self._waiting = self._waiting, {}
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for future in waiting.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(self._refused or DaemonLost(self._ended))
        if first and tell and self._granted:
            self._tell(ConnectionLost(why))

    def _tell(self, event: LinkEvent) -> bool:
        """Tell the listener; say whether it took it."""
        try:
            self._listener(event)
        except Exception:  # noqa: BLE001 - the listener's boundary: its bug costs it what it was told, not the rest
            _log.exception("a listener failed")
            return False
        return True

    def _take(self, message: jsonrpc.Message | jsonrpc.Bad) -> None:
        match message:
            case jsonrpc.Response():
                self._settle(message)
            case jsonrpc.Notification(method="session/update"):
                self._hear(message, schema.SessionUpdate, self._tell)
            case jsonrpc.Notification(method=extensions.TURN_STATE):
                self._hear(message, extensions.TurnState, self._tell)
            case jsonrpc.Notification(method="$/cancel_request"):
                self._hear(message, schema.CancelRequestParams, self._withdraw)
            case jsonrpc.Request(method="session/request_permission"):
                self._prompt(message)
            case jsonrpc.Request():
                text = f"This client has no {message.method}."
                self._fail(message.id, jsonrpc.METHOD_NOT_FOUND, text, "unknown_method")
            case _:
                return

    def _hear(self, message: jsonrpc.Notification, as_type: type[_T], take: Callable[[_T], object]) -> None:
        """Hand over a notification, unless it is of a kind that only a newer daemon knows."""
        params = jsonrpc.decoded(message.params, as_type)
        if not isinstance(params, jsonrpc.ErrorObject):
            take(params)

    def _fail(self, number: jsonrpc.Id, code: int, text: str, kind: str) -> None:
        self._send(jsonrpc.failure(number, jsonrpc.fault(code, text, kind)))

    def _withdraw(self, cancelled: schema.CancelRequestParams) -> None:
        prompt = self._prompts.pop(cancelled.request_id, None)
        if prompt is not None:
            self._fail(prompt.number, jsonrpc.CANCELLED, "Withdrawn.", "cancelled")
            self._tell(PromptWithdrawn(prompt))

    def _prompt(self, message: jsonrpc.Request) -> None:
        def reply(result: Any) -> None:
            if self._prompts.pop(message.id, None) is not None:
                self._send(jsonrpc.result(message.id, result))

        params = jsonrpc.decoded(message.params, schema.PermissionParams)
        if isinstance(params, jsonrpc.ErrorObject):
            self._send(jsonrpc.failure(message.id, params))
            return
        prompt = PermissionPrompt(message.id, params, reply)
        try:
            _ = prompt.request
        except (KeyError, msgspec.ValidationError):
            text = f"Wrong parameters: no {extensions.REVIEW} that is one."
            self._fail(message.id, jsonrpc.INVALID_PARAMS, text, "invalid_params")
            return
        self._prompts[message.id] = prompt
        if not self._tell(prompt) and self._prompts.pop(message.id, None) is not None:
            self._fail(message.id, jsonrpc.INTERNAL_ERROR, "This client has failed.", "internal")

    def _settle(self, message: jsonrpc.Response) -> None:
        with self._state:
            future = self._waiting.pop(message.id, None)
            if message.id is None and message.error is not None and not self._granted:
                self._refused = as_exception(message.error)  # we are not let in, and this is why it ends now
            self._granted = self._granted or (future is not None and message.error is None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        if message.error is not None:
            future.set_exception(as_exception(message.error))
        else:
            future.set_result(message.result or b"null")


def decoded(result: bytes, as_type: type[_T]) -> _T:
    """Return a result's JSON as `as_type`.

    Raises:
        DaemonRefused: it has another shape.
    """
    try:
        return msgspec.json.decode(result, type=as_type)
    except msgspec.DecodeError as error:
        raise DaemonRefused(f"The daemon's answer cannot be read: {error}.", "bad_answer") from error


def every_field(value: Any) -> Any:
    """Return an answer as scripts read it: every field there is, whatever its value."""
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if name != "meta"]
        return {name: every_field(getattr(value, name)) for name in names}
    return [every_field(each) for each in value] if isinstance(value, list | tuple) else value


def as_exception(error: jsonrpc.ErrorObject) -> StrongroomError:
    """Return the exception for an error of the daemon: the same that the daemon raised, where it is one of ours."""
    match error.kind:
        case "config":
            return ConfigError(error.message)
        case "journal_corrupt" | "journal_io" as kind:
            return JournalError(kind, error.message)
        case kind:
            return DaemonRefused(error.message, kind, error.data.get("turn") if isinstance(error.data, dict) else None)
