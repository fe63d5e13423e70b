"""A Messages API on the loopback: real HTTP/1.1 on a real socket, playing a script and judging every request.

Rule: it is as strict as the real API about what it is sent (`fault_in`), and as rude as the script wants in
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
    {"sse_split_utf8": text}       a reply with this text, its bytes sent one by one
    {"status", "headers", "body"}  any answer
    {"made": function}             the event stream that a function makes of the request's body
    {"connect": "refused"}         reset the connection without an answer
    {"connect": "hang"}            take the connection and say nothing
    {"$repeat_response": [r, n]}   r, n times

A port that really refuses, or never answers, is `refusing_port()` or `silent_port()`: no server that counts
its requests can do either.
"""

import argparse
import base64
import contextlib
import itertools
import json
import re
import signal
import socket
import struct
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.loopback import Loopback
from workers.wire.media_types import type_of

Response = str | Mapping[str, Any]
Call = tuple[str, Mapping[str, Any] | str]
"""A tool's name and its arguments; a string goes as it is, complete JSON or not."""

USAGE: Final[Mapping[str, int]] = {"input_tokens": 1, "output_tokens": 5}
_MAX_MARKS: Final = 4
_MOST_DATA: Final = 10 * 2**20
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


# what a reply looks like -----------------------------------------------------------------------------------


def event(payload: Mapping[str, Any]) -> str:
    """Return one event as it stands in a stream."""
    return f"event: {payload['type']}\ndata: {json.dumps(payload, ensure_ascii=False)}\n\n"


def start(usage: Mapping[str, Any] = USAGE) -> str:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    return event({"type": "message_start", "message": {**message, "stop_reason": None, "usage": {**usage}}})


def block(index: int, content_block: Mapping[str, Any], *deltas: Mapping[str, Any]) -> str:
    """Return the events of one content block."""
    return "".join(
        [
            event({"type": "content_block_start", "index": index, "content_block": content_block}),
            *(event({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas),
            event({"type": "content_block_stop", "index": index}),
        ]
    )


def text_block(index: int, *pieces: str) -> str:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces))


def call_block(index: int, name: str, arguments: Mapping[str, Any] | str, call_id: str) -> str:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    middle = len(raw) // 2
    return block(
        index,
        {"type": "tool_use", "id": call_id, "name": name, "input": {}},
        *({"type": "input_json_delta", "partial_json": piece} for piece in (raw[:middle], raw[middle:])),
    )


def end(stop_reason: str | None = "end_turn", usage: Mapping[str, Any] = USAGE) -> str:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    output = {"output_tokens": usage.get("output_tokens", 0)}
    return event({"type": "message_delta", "delta": delta, "usage": output}) + event({"type": "message_stop"})


def reply(
    text: str | Sequence[str] = "",
    calls: Sequence[Call] = (),
    *,
    stop_reason: str | None = None,
    usage: Mapping[str, Any] = USAGE,
    ids: Sequence[str] = (),
) -> str:
    """Return a whole reply as event-stream text. `text` given as a list streams in those pieces.

    Without `ids`, calls get ids that nobody else has.
    """
    pieces = [text] if isinstance(text, str) else list(text)
    blocks = [text_block(0, *pieces)] if any(pieces) else []
    names = [*ids, *(f"toolu_{uuid.uuid4().hex}" for _ in calls[len(ids) :])]
    for (name, arguments), call_id in zip(calls, names, strict=True):
        blocks.append(call_block(len(blocks), name, arguments, call_id))
    reason = stop_reason or ("tool_use" if calls else "end_turn")
    return start(usage) + "".join(blocks) + end(reason, usage)


def error(status: int, message: str, kind: str = "api_error", **headers: str) -> dict[str, Any]:
    """Return an error answer in the API's shape; `retry_after="1"` becomes the header of that name."""
    return {
        "status": status,
        "headers": {name.replace("_", "-"): value for name, value in headers.items()},
        "body": json.dumps({"type": "error", "error": {"type": kind, "message": message}}),
    }


# what a request must look like -----------------------------------------------------------------------------


def fault_in(body: Any, headers: Mapping[str, str] = {}) -> str | None:
    """Say what the API would refuse in this request, or None; `headers` by lower-case name."""
    try:
        _judge(body)
        _judge_thinking(body, headers.get("anthropic-beta", "").split(","))
    except _RefusedError as refused:
        return str(refused)
    except (AttributeError, KeyError, TypeError, ValueError) as odd:
        return f"malformed: {odd!r}"
    return None


class _RefusedError(Exception):
    pass


def _must(holds: object, message: str) -> None:
    if not holds:
        raise _RefusedError(message)


def _judge(body: Any) -> None:
    _must(isinstance(body, dict), "the body must be a JSON object")
    _must(isinstance(body.get("model"), str) and body["model"], "model: required")
    _must(type(body.get("max_tokens")) is int and body["max_tokens"] > 0, "max_tokens: must be a positive integer")
    _must(body.get("stream") is True, "stream: this server only streams")
    _must(isinstance(body.get("messages"), list) and body["messages"], "messages: at least one is required")
    _judge_tools(body.get("tools", []))
    if "system" in body:
        _judge_content("system", body["system"], {"text"})
    _judge_messages(body["messages"])
    marks = [marked for marked in _objects(body) if marked.get("cache_control") is not None]
    _must(len(marks) <= _MAX_MARKS, f"at most {_MAX_MARKS} blocks may have cache_control, found {len(marks)}")
    for marked in marks:
        _must(marked["cache_control"].get("type") == "ephemeral", "cache_control: type must be ephemeral")
        _must(marked.get("type") not in _THOUGHTS, f"cache_control: not on a {marked.get('type')} block")


_THOUGHTS: Final = {"thinking", "redacted_thinking"}
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_REFUSED: Final[Mapping[str, Sequence[str]]] = {
    "claude-haiku-4-5": ("adaptive", "between_tools", "effort"),
    "claude-sonnet-4-6": ("between_tools",),
    "claude-opus-4-8": ("enabled", "between_tools", "temperature"),
    "claude-haiku-5-5": ("enabled", "between_tools", "temperature"),
    "claude-sonnet-5-5": ("enabled", "disabled", "temperature"),
    "claude-opus-5-5": ("enabled", "disabled", "between_tools", "temperature"),
}
"""What some models answer 400 to: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting"""


def _judge_thinking(body: dict[str, Any], betas: Sequence[str]) -> None:
    thinking, config = body.get("thinking", {"type": "disabled"}), body.get("output_config", {})
    kind, effort = thinking.get("type"), config.get("effort", "high")
    refused = _REFUSED.get(body["model"], ())
    _must(kind in ("enabled", "adaptive", "disabled", "between_tools"), f"thinking.type: {kind!r} is none")
    _must("thinking" not in body or kind not in refused, f"thinking.type: {kind} is not supported by this model")
    _must(effort in _EFFORTS, f"output_config.effort: {effort!r} is none")
    _must("effort" not in config or "effort" not in refused, "output_config.effort: not supported by this model")
    off = "thinking" in body and kind in ("disabled", "between_tools")
    _must(not off or effort not in ("xhigh", "max"), f"thinking.type: {kind} is not supported with effort {effort}")
    _must(set(thinking) <= {"type", "budget_tokens", "display", "block_binding"}, "thinking: extra inputs")
    bound = "thinking-binding-controls-2026-08-01" in betas
    _must(bound or "block_binding" not in thinking, "thinking.block_binding: extra inputs are not permitted")
    if "temperature" in body:
        _must("temperature" not in refused, "temperature: not supported by this model")
        _must(0 <= body["temperature"] <= 1, "temperature: must be from 0 to 1")
        _must(kind not in ("enabled", "adaptive") or body["temperature"] == 1, "temperature: only 1 with thinking")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        _must(type(budget) is int and budget >= 1024, "thinking.budget_tokens: at least 1024")
        _must(budget < body["max_tokens"], "max_tokens: must be greater than thinking.budget_tokens")
        _judge_open_loop(body["messages"])


def _judge_open_loop(messages: list[dict[str, Any]]) -> None:
    """A loop of tool calls is one turn of the assistant's, which begins with its thinking."""
    at = len(messages) - 1
    while at > 0 and isinstance(messages[at]["content"], list) and messages[at]["content"][0]["type"] == "tool_result":
        at -= 2
    if at < len(messages) - 1:
        first = messages[at + 1]["content"][0]["type"]
        _must(first in _THOUGHTS, f"messages.{at + 1}: Expected `thinking` or `redacted_thinking`, but found `{first}`")


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Walk every block, tool and message; what a tool call was given is no such object."""
    if isinstance(value, dict):
        yield value
        for name, child in value.items():
            if name not in {"input", "input_schema", "cache_control"}:
                yield from _objects(child)
    elif isinstance(value, list):
        for child in value:
            yield from _objects(child)


def _judge_tools(tools: Any) -> None:
    _must(isinstance(tools, list), "tools: must be a list")
    for tool in tools:
        _must(_TOOL_NAME.fullmatch(tool.get("name", "")), f"tools: bad name {tool.get('name')!r}")
        _must(tool.get("input_schema", {}).get("type") == "object", "tools: input_schema.type must be object")
    names = [tool["name"] for tool in tools]
    _must(len(set(names)) == len(names), "tools: names must be unique")


def _judge_messages(messages: list[Any]) -> None:
    used: set[str] = set()
    pending: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        _must(isinstance(message, dict) and set(message) == {"role", "content"}, f"{where}: needs role and content")
        role = "assistant" if number % 2 else "user"
        _must(message["role"] == role, f"{where}: roles must alternate, starting with user")
        allowed = {"text", "tool_result", "image", "document"} if role == "user" else None
        _judge_content(where, message["content"], allowed)
        blocks = message["content"] if isinstance(message["content"], list) else []
        if role == "user":
            _judge_results(where, blocks, pending)
            pending = []
        else:
            pending = [_judge_use(where, one, used) for one in blocks if one["type"] == "tool_use"]
            _must(all(one["type"] != "tool_result" for one in blocks), f"{where}: tool_result is for the user")
    _must(messages[-1]["role"] == "user", "messages: the last one must be the user's")


def _judge_content(where: str, content: Any, allowed: set[str] | None) -> None:
    if isinstance(content, str):
        _must(content.strip(), f"{where}: content must not be empty")
        return
    _must(isinstance(content, list) and content, f"{where}: content must not be empty")
    for one in content:
        _must(isinstance(one, dict) and isinstance(one.get("type"), str), f"{where}: a block needs a type")
        _must(allowed is None or one["type"] in allowed, f"{where}: no place for a {one['type']} block")
        if one["type"] == "text":
            _must(isinstance(one.get("text"), str), f"{where}: text must be a string")
            _must(one["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")
        if one["type"] == "thinking":
            signed = isinstance(one.get("thinking"), str) and isinstance(one.get("signature"), str)
            _must(signed, f"{where}: thinking needs its text and its signature")
        if one["type"] in {"image", "document"}:
            _judge_source(where, one)


def _judge_source(where: str, shown: dict[str, Any]) -> None:
    """Check that an image or a document is one, by how it begins and ends."""
    source = shown["source"]
    _must(set(source) == {"type", "media_type", "data"} and source["type"] == "base64", f"{where}: a base64 source")
    types = {"document": ["application/pdf"], "image": ["image/png", "image/jpeg", "image/gif", "image/webp"]}
    _must(source["media_type"] in types[shown["type"]], f"{where}: no {source['media_type']} in a {shown['type']}")
    data = base64.b64decode(source["data"], validate=True)
    _must(type_of(data) == source["media_type"], f"{where}: the data are no {source['media_type']}")
    _must(len(source["data"]) <= _MOST_DATA, f"{where}: more data than an image or a document may have")


def _judge_use(where: str, use: dict[str, Any], used: set[str]) -> str:
    name = use.get("id", "")
    _must(isinstance(name, str) and _ID.fullmatch(name), f"{where}: tool_use.id {name!r} is not an id")
    _must(name not in used, f"{where}: `tool_use` ids must be unique, {name} is not")
    _must(_TOOL_NAME.fullmatch(use.get("name", "")), f"{where}: tool_use.name {use.get('name')!r} is not a name")
    _must(isinstance(use.get("input"), dict), f"{where}: tool_use.input must be an object")
    used.add(name)
    return str(name)


def _judge_results(where: str, blocks: list[dict[str, Any]], pending: list[str]) -> None:
    kinds = [one["type"] for one in blocks]
    results = [one for one in blocks if one["type"] == "tool_result"]
    _must("tool_result" not in kinds[len(results) :], f"{where}: tool_result blocks must come first")
    answered = [one.get("tool_use_id") for one in results]
    for name in pending:
        _must(
            name in answered,
            f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {name}",
        )
    for answer in answered:
        _must(answer in pending, f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {answer}")
    _must(len(set(answered)) == len(answered), f"{where}: each tool_use must have a single result")
    for one in results:
        content = one.get("content", "")
        _must(content or one.get("is_error") is not True, f"{where}: content cannot be empty if is_error is true")
        if content:
            _judge_content(where, content, {"text", "image", "document"})


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


class MessagesServer(Loopback):
    """Plays `responses` in order to whoever asks; see the module for their form.

    Args:
        responses: the script; `add` appends to it at any time.
        repeat_last: play the last response for ever instead of answering 500 at the end.
        checked: answer 400 to a request that the real API would refuse.
        port: 0 for any.
        on_request: called with each request, from the connection's thread, before it is answered.
    """

    def __init__(
        self,
        responses: Iterable[Response] = (),
        *,
        repeat_last: bool = False,
        checked: bool = True,
        port: int = 0,
        on_request: Callable[[Recorded], None] = lambda _: None,
    ) -> None:
        super().__init__(port=port)
        self._script = [each for response in responses for each in _expanded(response)]
        self._repeat_last = repeat_last
        self._checked = checked
        self._on_request = on_request
        self._numbers = itertools.count()
        self.requests: list[Recorded] = []

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Any]:
        """The JSON bodies of all requests so far."""
        return [request.body for request in self.requests]

    @property
    def left(self) -> int:
        """How many responses have not been played."""
        return len(self._script)

    def add(self, *responses: Response) -> None:
        """Append to the script."""
        with self._lock:
            self._script += [each for response in responses for each in _expanded(response)]

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
        request.refused = fault_in(request.body, request.headers) if self._checked else None
        wrong_path = request.method != "POST" or not request.path.split("?")[0].endswith("/v1/messages")
        with self._lock:
            self.requests.append(request)
            if wrong_path:
                response = error(404, f"no such path: {request.method} {request.path}", "not_found_error")
            elif request.refused:
                response = error(400, request.refused, "invalid_request_error")
            elif self._script:
                response = self._pop()
            else:
                response = error(500, "the script of this test server is used up", x_should_retry="false")
        self._on_request(request)
        if "made" in response:
            response = {"sse": response["made"](request.body)}
        return _play(connection, request, response) and request.headers.get("connection") != "close"


def _expanded(response: Response) -> list[dict[str, Any]]:
    if isinstance(response, str):
        return [{"sse": response}]
    if "$repeat_response" in response:
        again, times = response["$repeat_response"]
        return _expanded(again) * int(times)
    known = {"status", "headers", "body", "sse", "then", "gap", "sse_split_utf8", "connect", "made"}
    if unknown := set(response) - known:
        raise ValueError(f"a response cannot have {sorted(unknown)}")
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
    headers = {"content-type": "application/json"} if response.get("body", "").startswith('{"type"') else {}
    headers = {**headers, "content-length": str(len(response.get("body", "").encode()))}
    return _lines(f"HTTP/1.1 {status} x", {**headers, **response.get("headers", {})})


def _lines(first: str, headers: Mapping[str, str]) -> bytes:
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode()


def _stream(connection: socket.socket, response: dict[str, Any]) -> None:
    headers = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
    connection.sendall(_lines("HTTP/1.1 200 OK", {**headers, **response.get("headers", {})}))
    if "sse_split_utf8" in response:
        whole = reply(response["sse_split_utf8"]).encode()
        connection.sendall(b"".join(_chunk(whole[i : i + 1]) for i in range(len(whole))))
        return
    text = response["sse"]
    if "gap" not in response:
        if text:
            connection.sendall(_chunk(text.encode()))
        return
    pause = threading.Event()
    for each in re.findall(r".*?\n\n|.+\Z", text, re.DOTALL):
        connection.sendall(_chunk(each.encode()))
        pause.wait(response["gap"])


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A Messages API on the loopback that plays a script.")
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
    with MessagesServer(
        json.loads(options.script.read_text(encoding="utf-8")),
        repeat_last=options.repeat_last,
        checked=not options.unchecked,
        on_request=record,
    ) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
