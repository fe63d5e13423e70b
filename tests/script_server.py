"""A model's server on the loopback: real HTTP/1.1 on a real socket, playing a script and judging every request.

Rule: it is as strict as the real API about what it is sent, which a subclass says, and as rude as the script wants in
what it sends. A request that breaks the API's rules gets a 400 and uses up nothing of the script; after the
script comes a 500 that is not to be retried.

In a test, whatever its event loop (the server lives in threads):

    with MessagesServer([reply("hello")]) as server:
        ... server.url, server.requests ...

As a program, for command lines and benchmarks (prints its port, serves until its input ends or SIGTERM):

    python -m tests.messages_server --script FILE [--repeat-last] [--unchecked] [--record FILE]

A script is a list of responses, played in order (in FILE: a JSON list):

    "..." or {"sse": text}         a stream of events; also "headers", and one of
        "then": "reset" | "hang"   cut the connection, or fall silent, without the end of the body
        "gap": seconds             send event by event with a pause in between; 0 for none
        "split": true              send the bytes one by one
    {"sse_split_utf8": text}       a reply with this text, its bytes sent one by one
    {"status", "headers", "body"}  any answer
    {"made": function}             as "sse", with the text that a function makes of the request's body
    {"connect": "refused"}         reset the connection without an answer
    {"connect": "hang"}            take the connection and say nothing
    {"$repeat_response": [r, n]}   r, n times

A port that really refuses, or never answers, is `refusing_port()` or `silent_port()`: no server that counts
its requests can do either.
"""

import argparse
import contextlib
import itertools
import json
import re
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tests.loopback import Loopback

Response = str | Mapping[str, Any]


# what a request must look like -----------------------------------------------------------------------------


class RequestFaultError(Exception):
    """What an API would refuse in a request."""


def must(holds: object, message: str) -> None:
    if not holds:
        raise RequestFaultError(message)


def fault_of(judge: Callable[[Any], None], body: Any) -> str | None:
    """Say what a judge refuses in this request, or None."""
    try:
        judge(body)
    except RequestFaultError as refused:
        return str(refused)
    except (AttributeError, KeyError, TypeError, ValueError) as odd:
        return f"malformed: {odd!r}"
    return None


# the server ------------------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: Any
    connection: int
    """Counts the connections of this server, from 0: two requests with the same number shared one."""
    refused: str | None = None
    """What was wrong with it, if it was answered 400."""
    client_left: threading.Event = field(default_factory=threading.Event)
    """Set when the client closed the connection before the answer had ended."""

    def as_json(self) -> str:
        record = {"method": self.method, "path": self.path, "headers": self.headers, "body": self.body}
        return json.dumps({**record, "refused": self.refused})


class ScriptServer(Loopback):
    """Plays `responses` in order to whoever asks; see the module for their form.

    Args:
        responses: the script; `add` appends to it at any time.
        repeat_last: play the last response for ever instead of answering 500 at the end.
        checked: answer 400 to a request that the real API would refuse.
        judge: says what is wrong with a request, in place of the API's rules.
        refusal: the status of an answer to a request in which something is.
        port: 0 for any.
        on_request: called with each request, from the connection's thread, before it is answered.
    """

    PATH: ClassVar[str]
    """How the path of each request ends."""

    def __init__(
        self,
        responses: Iterable[Response] = (),
        *,
        repeat_last: bool = False,
        checked: bool = True,
        judge: Callable[[Any], str | None] | None = None,
        refusal: int = 400,
        port: int = 0,
        on_request: Callable[[Recorded], None] = lambda _: None,
    ) -> None:
        super().__init__(port=port)
        self._script = [each for response in responses for each in self._expanded(response)]
        self._repeat_last = repeat_last
        self._checked, self._judge = checked, judge
        self._refusal = refusal
        self._on_request = on_request
        self._numbers = itertools.count()
        self.requests: list[Recorded] = []

    def fault_in(self, body: Any) -> str | None:
        """Say what the API would refuse in this request, or None."""
        raise NotImplementedError

    def fault_in_request(self, request: Recorded) -> str | None:
        """Say the same of a request whose headers count, too."""
        return self.fault_in(request.body)

    def error(self, status: int, message: str, kind: str, **headers: str) -> dict[str, Any]:
        """Return an error answer in the API's shape; `retry_after="1"` becomes the header of that name."""
        raise NotImplementedError

    def reply(self, text: str) -> str:
        """Return a whole reply as event-stream text."""
        raise NotImplementedError

    def serves(self, path: str) -> bool:
        """Say whether requests of a path are answered."""
        return path.split("?", maxsplit=1)[0].endswith(self.PATH)

    def played(self, _request: Recorded, response: dict[str, Any]) -> dict[str, Any]:
        """Return the answer that a response of the script is to a request."""
        return response

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]

    @property
    def left(self) -> int:
        """How many responses have not been played."""
        return len(self._script)

    def add(self, *responses: Response) -> None:
        with self._lock:
            self._script += [each for response in responses for each in self._expanded(response)]

    def taken(self, _peer: str) -> int:
        return next(self._numbers)

    def serve(self, connection: socket.socket, what: int) -> None:
        with connection.makefile("rb") as stream:
            if fault := self._next_connect_fault():
                _play_connect_fault(connection, fault)
                return
            while (request := _read_request(stream, what)) is not None:
                if not self._answer(connection, request):
                    return

    def _next_connect_fault(self) -> str | None:
        """Take a connect fault that is next; it is played to a connection, not to a request."""
        with self._lock:
            if self._script and "connect" in self._script[0]:
                return str(self._pop()["connect"])
        return None

    def _pop(self) -> dict[str, Any]:
        last = len(self._script) == 1 and self._repeat_last
        return self._script[0] if last else self._script.pop(0)

    def _answer(self, connection: socket.socket, request: Recorded) -> bool:
        """Answer one request; say whether the connection can go on."""
        wrong_path = request.method != "POST" or not self.serves(request.path)
        if self._checked and not wrong_path:
            request.refused = self._judge(request.body) if self._judge else self.fault_in_request(request)
        with self._lock:
            self.requests.append(request)
            if wrong_path:
                response = self.error(404, f"no such path: {request.method} {request.path}", "not_found_error")
            elif request.refused:
                response = self.error(self._refusal, request.refused, "invalid_request_error")
            elif self._script:
                response = self.played(request, self._pop())
            else:
                used_up = "the script of this test server is used up"
                response = self.error(500, used_up, "api_error", x_should_retry="false")
        self._on_request(request)
        if "made" in response:
            response = self.played(request, {**response, "sse": response["made"](request.body)})
        return self.play(connection, request, response)

    def play(self, connection: socket.socket, request: Recorded, response: Mapping[str, Any]) -> bool:
        """Answer a request with a response of the script's form; say whether the connection can go on."""
        return _play(connection, request, dict(response)) and request.headers.get("connection") != "close"

    def _expanded(self, response: Response) -> list[dict[str, Any]]:
        if isinstance(response, str):
            return [{"sse": response}]
        if "$repeat_response" in response:
            again, times = response["$repeat_response"]
            return self._expanded(again) * int(times)
        known = {"status", "headers", "body", "sse", "then", "gap", "split", "sse_split_utf8", "connect", "made"}
        if unknown := set(response) - known:
            raise ValueError(f"a response cannot have {sorted(unknown)}")
        if "sse_split_utf8" in response:
            return [{"sse": self.reply(response["sse_split_utf8"]), "split": True}]
        return [dict(response)]


def _read_request(stream: Any, number: int) -> Recorded | None:
    """Read one request; None at the end of the connection, also where that comes in the middle of one."""
    line = stream.readline()
    if not line.endswith(b"\n") or not line.strip():
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := stream.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    payload = stream.read(length)
    if not line or len(payload) < length:
        return None
    try:
        body = json.loads(payload)
    except ValueError:
        body = None
    return Recorded(method, path, headers, body, number)


def _play(connection: socket.socket, request: Recorded, response: dict[str, Any]) -> bool:
    if "connect" in response:
        _play_connect_fault(connection, response["connect"])
        return False
    if "status" in response:
        connection.sendall(_head(response["status"], response) + response.get("body", "").encode())
        return True
    try:
        _stream(connection, response)
    except OSError:
        request.client_left.set()
        raise
    match response.get("then"):
        case "reset":
            _reset(connection)
        case "hang":
            _wait_for_the_client_to_leave(connection)
            request.client_left.set()
        case _:
            connection.sendall(b"0\r\n\r\n")
            return True
    return False


def _head(status: int, response: Mapping[str, Any]) -> bytes:
    headers = {"content-type": "application/json"} if response.get("body", "").startswith('{"') else {}
    headers = {**headers, "content-length": str(len(response.get("body", "").encode()))}
    return _lines(f"HTTP/1.1 {status} x", {**headers, **response.get("headers", {})})


def _lines(first: str, headers: Mapping[str, str]) -> bytes:
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode()


def _stream(connection: socket.socket, response: dict[str, Any]) -> None:
    headers = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
    connection.sendall(_lines("HTTP/1.1 200 OK", {**headers, **response.get("headers", {})}))
    text = response["sse"]
    if response.get("split"):
        whole = text.encode()
        connection.sendall(b"".join(_chunk(whole[i : i + 1]) for i in range(len(whole))))
        return
    if "gap" not in response:
        if text:
            connection.sendall(_chunk(text.encode()))
        return
    pause = threading.Event()
    end = "\n\n" if "\n\n" in text else "\n"  # of an event, or of a line that is one
    for number, each in enumerate(re.findall(rf".*?{end}|.+\Z", text, re.DOTALL)):
        if number:  # none after the last: a client may have read all that it needs
            pause.wait(response["gap"])
        connection.sendall(_chunk(each.encode()))


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _play_connect_fault(connection: socket.socket, fault: str) -> None:
    match fault:
        case "refused":
            _reset(connection)
        case "hang":
            _wait_for_the_client_to_leave(connection)
        case _:
            raise ValueError(f"no such connect fault: {fault}")


def _reset(connection: socket.socket) -> None:
    """Make the close that follows a reset; what was sent before has arrived, as this is the loopback."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _wait_for_the_client_to_leave(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            pass


# ports without a server -------------------------------------------------------------------------------------


@contextlib.contextmanager
def refusing_port() -> Iterator[int]:
    """Yield a port that refuses every connection and that nobody else can take meanwhile."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """Yield a port at which a connection is neither made nor refused: its queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


# the program ------------------------------------------------------------------------------------------------


def serve_as_program(kind: type[ScriptServer], arguments: Sequence[str] | None = None) -> int:
    """Serve until the input ends or SIGTERM comes; return the exit code."""
    parser = argparse.ArgumentParser(description=f"A {kind.__name__} on the loopback that plays a script.")
    parser.add_argument("--script", type=Path, required=True, help="a JSON list of responses")
    parser.add_argument("--repeat-last", action="store_true", help="play the last response for ever")
    parser.add_argument("--unchecked", action="store_true", help="answer bad requests too")
    parser.add_argument("--record", type=Path, help="append every request to this file, one JSON line each")
    options = parser.parse_args(arguments)
    writing = threading.Lock()

    def record(request: Recorded) -> None:
        if options.record:
            with writing, options.record.open("a", encoding="utf-8") as file:
                file.write(request.as_json() + "\n")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with kind(
        json.loads(options.script.read_text(encoding="utf-8")),
        repeat_last=options.repeat_last,
        checked=not options.unchecked,
        on_request=record,
    ) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0
