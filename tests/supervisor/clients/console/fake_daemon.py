"""A daemon whose turns the test plays itself: it holds the home's real lock and listens at its real socket.

What opens a session is answered at once; prompts, continuations and answered questions wait for the test (`next`).
"""

import json
import queue
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, Final, Self

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.acp.jsonrpc import LineBuffer
from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.daemon.process import lock
from supervisor.daemon.process.listener import listening
from tests.supervisor.command import HANG_GUARD

SESSION: Final = "20260101-000000-abcdef"
OPTIONS: Final[list[schema.Option]] = [
    schema.ConfigOption(
        id=name,
        name=name.title(),
        category=category,
        current_value=values[0],
        options=[schema.OptionValue(value=value, name=value) for value in values],
    )
    for name, category, values in (
        ("model", "model", ("offline", "claude-haiku-5-5")),
        ("profile", "mode", ("vault", "project")),
        ("effort", "thought_level", ("default", "high")),
    )
]

GO: Final = schema.AvailableCommands([schema.AvailableCommand("go", "Let a suspended turn go on.")])


@dataclass(frozen=True)
class Asked:
    """A request that waits for the test."""

    connection: socket
    message: jsonrpc.Request

    @property
    def params(self) -> Any:
        return json.loads(self.message.params)

    def refuse(self, code: int, message: str, kind: str) -> None:
        self.connection.sendall(jsonrpc.failure(self.message.id, jsonrpc.fault(code, message, kind)))


class FakeDaemon:
    """Use it in `with`. `history` is what a session that is loaded is told; `live` what follows its answer."""

    def __init__(self, home: Path, root: Path, notices: tuple[str, ...] = ()) -> None:
        self.settings = Settings(Config(), home / "config.toml", home)
        self.facts = extensions.SessionFacts(
            session_id=SESSION,
            profile="vault",
            model="offline",
            root=str(root),
            tools=("read_file", "run_cmd"),
            notices=notices,
        )
        self.history: list[schema.Update] = []
        self.sessions: list[schema.SessionInfo] = []
        self.seen: list[str] = []
        self.files: dict[str, extensions.AttachedFile] = {}
        """What can go along with a prompt, by path; those of which it has the letters are found."""
        self.hold = False
        """Whether a new session waits for `release`."""
        self.loaded = ""
        """The session that was loaded last."""
        self.hold_option = False
        """Whether the choice of an option waits for the test."""
        self._requests: queue.Queue[Asked] = queue.Queue()
        self._answers: queue.Queue[jsonrpc.Response] = queue.Queue()
        self._notes: queue.Queue[jsonrpc.Notification] = queue.Queue()
        self._connections: list[socket] = []
        self._number = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        held = self._stack.enter_context(lock.hold(self.settings))
        server = self._stack.enter_context(listening(self.settings.socket)).socket
        server.setblocking(True)
        held.publish(self.settings.socket)
        self._server = server
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(SHUT_RDWR)
        self.drop()
        self._stack.close()

    # --- what the test does -----------------------------------------------------------------------------------------

    def next(self, method: str) -> Asked:
        asked = self._requests.get(timeout=HANG_GUARD)
        assert asked.message.method == method
        return asked

    def prompt(self) -> str:
        """Wait for a prompt; return its text. It is answered by `end`."""
        self._prompt = self.next("session/prompt")
        text: str = self._prompt.params["prompt"][0]["text"]
        return text

    @property
    def blocks(self) -> Any:
        return self._prompt.params["prompt"]

    def end(self, status: str = "ok", **facts: Any) -> None:
        """Answer the last prompt, or continuation."""
        reason: schema.StopReason = "cancelled" if status == "cancelled" else "end_turn"
        summary = {"turn": 1, "status": status, "answer": "", **facts}
        self.answer(self._prompt, schema.PromptResult(stop_reason=reason, meta={extensions.TURN: summary}))

    def continued(self, *, wait: bool = False) -> None:
        """Wait for a continuation; answer it, or let `end` do that."""
        self._prompt = self.next(extensions.CONTINUE_METHOD)
        if not wait:
            self.answer(self._prompt, None)

    def release(self, *, refused: str = "") -> None:
        """Answer the request for a new session that was held, or refuse it."""
        asked = self.next("session/new")
        if refused:
            asked.refuse(-32602, refused, "config")
        else:
            self.answer(asked, self._results()["session/new"])

    def answer(self, asked: Asked, result: Any) -> None:
        asked.connection.sendall(jsonrpc.result(asked.message.id, result))

    def refuse(self, message: str, kind: str) -> None:
        """Answer the last prompt with an error."""
        self._prompt.refuse(-32603, message, kind)

    def tell(self, *updates: schema.Update) -> None:
        for update in updates:
            self._connections[-1].sendall(_updated(update))

    def say(self, text: str, message: str = "turn-1-step-0") -> None:
        self.tell(said(text, message))

    def reply(self, text: str, message: str = "turn-1-step-0") -> None:
        """Say something, and answer the last prompt."""
        self.say(text, message)
        self.end()

    def state(self, state: str, retry: str = "", suspended: extensions.Suspension | None = None) -> None:
        params = extensions.TurnState(session_id=SESSION, state=state, turn=1, retry=retry, suspended=suspended)
        self._connections[-1].sendall(jsonrpc.notification(extensions.TURN_STATE, params))

    def suspend(self) -> None:
        """Let the turn wait for a limit, until a moment in the year 2100."""
        self.state("Suspended", suspended=extensions.Suspension(kind="limit", why="Too many requests.", until=4.1e9))

    def ask(self, tool: str, arguments: str, reason: str = "policy asks", **more: Any) -> str:
        """Ask for permission; `more` are other fields of the review. Return the question's id."""
        self._number += 1
        review = extensions.ApprovalRequest(tool=tool, arguments=arguments, reason=reason, **more)
        params = schema.PermissionParams(
            session_id=SESSION,
            tool_call=schema.PermissionCall(tool_call_id=f"call-{self._number}", title=tool),
            options=[schema.PermissionOption(option_id="allow_once", name="Run it", kind="allow_once")],
            meta={extensions.REVIEW: review},
        )
        number = f"ask-{self._number}"
        self._connections[-1].sendall(jsonrpc.request(number, "session/request_permission", params))
        return number

    def withdraw(self, number: str) -> None:
        params = schema.CancelRequestParams(request_id=number)
        self._connections[-1].sendall(jsonrpc.notification("$/cancel_request", params))

    def answered(self) -> dict[str, Any]:
        """Wait for the answer to a question that was not withdrawn: its option, and what else it says."""
        while (given := self._answers.get(timeout=HANG_GUARD).result) is None:
            pass
        result = json.loads(given)
        return {"option": result["outcome"]["optionId"], **result.get("_meta", {})}

    def is_answered(self) -> bool:
        """Whether an answer is here that nobody has looked at."""
        return not self._answers.empty()

    def noted(self, method: str) -> None:
        """Wait for a notification."""
        assert self._notes.get(timeout=HANG_GUARD).method == method

    @property
    def has_noted(self) -> bool:
        """Whether a notification was heard that the test has not waited for."""
        return not self._notes.empty()

    def drop(self) -> None:
        """End all connections, as a daemon does that ends; not one that comes meanwhile, to the next."""
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    # --- what it does by itself -------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket) -> None:
        lines = LineBuffer(2**20)
        with connection, suppress(OSError):
            while chunk := connection.recv(2**16):
                for line in lines.feed(chunk):
                    assert isinstance(line, bytes)
                    for message in jsonrpc.decode(line):
                        self._take(connection, message)

    def _take(self, connection: socket, message: jsonrpc.Message | jsonrpc.Bad) -> None:
        match message:
            case jsonrpc.Request():
                self.seen.append(message.method)
                if message.method == "session/load":
                    self.loaded = json.loads(message.params or b"")["sessionId"]
                    connection.sendall(b"".join(map(_updated, self.history)))
                result = self._results().get(message.method, self._of_files(message))
                held = {"session/new": self.hold, "session/set_config_option": self.hold_option}
                if result is None or held.get(message.method):
                    self._requests.put(Asked(connection, message))
                else:
                    connection.sendall(jsonrpc.result(message.id, result))
            case jsonrpc.Response():
                self._answers.put(message)
            case jsonrpc.Notification(method=extensions.VARIABLES):
                pass  # each client begins with it
            case jsonrpc.Notification():
                self._notes.put(message)

    def _of_files(self, message: jsonrpc.Request) -> Any:
        """Return what is answered at once about files."""
        params = json.loads(message.params or b"{}")
        if message.method == extensions.FIND_METHOD:
            return extensions.FindResult(SESSION, tuple(path for path in self.files if params["typed"] in path))
        if message.method == extensions.ATTACH_METHOD:
            named = (self.files[path] for path in params["paths"] if path in self.files)
            return extensions.AttachResult(SESSION, tuple(named))
        return None

    def _results(self) -> dict[str, Any]:
        """Return what is answered at once, by method."""
        meta = {extensions.OPTIONS: self.facts}
        taken_up = schema.SessionResult(config_options=OPTIONS, meta=meta)
        return {
            "initialize": _introduction(),
            "session/new": schema.NewSessionResult(session_id=SESSION, config_options=OPTIONS, meta=meta),
            "session/load": taken_up,
            "session/resume": taken_up,
            "session/list": schema.ListResult(sessions=self.sessions),
            "session/close": {},
            "session/set_config_option": schema.OptionsResult(config_options=OPTIONS),
        }


def _introduction() -> schema.InitializeResult:
    version = metadata.version("strongroom")
    about = extensions.Daemon(pid=1, version=version, home="", model="offline", profile="vault")
    return schema.InitializeResult(
        protocol_version=1,
        agent_capabilities={},
        agent_info=schema.Implementation(name="fake", version=version),
        auth_methods=[],
        meta={extensions.DAEMON: about},
    )


def _updated(update: schema.Update) -> bytes:
    return jsonrpc.notification("session/update", schema.SessionUpdate(session_id=SESSION, update=update))


def holding(session: str, text: str, *marks: tuple[int, int]) -> extensions.FoundText:
    where: dict[str, Any] = {"title": "A title", "turn": 3, "at": 1.0, "who": "tool", "tool": "read_file", "call": "c"}
    return extensions.FoundText(session_id=session, text=text, marks=marks, **where)


def said(text: str, message: str = "turn-1-step-0") -> schema.AgentMessageChunk:
    return schema.AgentMessageChunk(content=schema.Text(text=text), message_id=message)


def heard(text: str, message: str = "turn-1") -> schema.UserMessageChunk:
    return schema.UserMessageChunk(content=schema.Text(text=text), message_id=message)


def called(number: int, tool: str, arguments: str, kind: schema.ToolKind = "read") -> schema.ToolCall:
    facts = extensions.CallFacts(tool=tool, arguments=arguments)
    return schema.ToolCall(
        tool_call_id=f"call-{number}", title=tool, kind=kind, status="in_progress", meta={extensions.CALL: facts}
    )


def ended(number: int, tool: str, output: str, kind: str | None = None) -> schema.ToolCallUpdate:
    facts = extensions.CallFacts(tool=tool, kind=kind, seconds=0.25)
    return schema.ToolCallUpdate(
        tool_call_id=f"call-{number}",
        status="failed" if kind else "completed",
        content=[schema.Content(content=schema.Text(text=output))],
        meta={extensions.CALL: facts},
    )
