"""The real daemon in a process of its own, and raw lines of JSON-RPC to it."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from supervisor.acp import extensions, schema
from supervisor.system import unix_socket
from tests.forked import Forked
from tests.supervisor.command import CODE, HANG_GUARD, Family, Home, children, wait_until

_PATIENCE: Final = 2.0
"""Seconds that turns which a test left running have, before they are cut off."""

_PROGRAM: Final = """
import os, sys
from pathlib import Path
from supervisor.config.fault_plan import RunningFaultPlan, read_plan
from supervisor.config.settings import load
from supervisor.daemon.program import run
from supervisor.system.process_end import run_to_exit

def ready() -> None:
    os.write(int(sys.argv[1]), b"listening")
    os.close(int(sys.argv[1]))

plan = RunningFaultPlan(read_plan(Path(sys.argv[2]))) if sys.argv[2:] else None
run_to_exit(lambda: run(load(), None, 0, ready, plan))
"""


ASK: Final = "session/request_permission"


class DaemonProcess(Home):
    """A daemon in the foreground. In `with` it runs, and has no child left after it.

    Args:
        home: its STRONGROOM_HOME; made by the daemon if need be. Not within a root of its sessions.
        folder: its working directory.
        environment: what it finds there beside PATH, the home and the code.
    """

    prelude = ""
    """Python that a new process runs first: to set limits, or to be there before something is imported."""

    patch = ""
    """As `prelude`, but in a process that has imported everything: to put something in the place of something there."""

    plan: Path | None = None
    """The faults that its workers have."""

    def __init__(self, home: Path, folder: Path, **environment: str) -> None:
        super().__init__(home, folder, **environment)
        self.socket = home / "daemon.sock"
        self.code: int | None = None
        """How it ended, once it has."""
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = home.with_name(f"{home.name}.err")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        gone = self.end()
        assert gone or kind is not None, "the daemon has left a child behind"

    def start(self) -> None:
        """Start it, again if it has ended, and wait for its word that it listens."""
        reader, writer = os.pipe()
        with open(reader, "rb", buffering=0) as word, self._errors.open("ab") as errors:
            self._process = self._begin(
                str(writer),
                *([] if self.plan is None else [str(self.plan)]),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={"PYTHONPATH": str(CODE), **self.environment},
                cwd=self.folder,
                pass_fds=(writer,),
            )
            os.close(writer)
            self.code = None
            poll = select.poll()
            poll.register(word, select.POLLIN)
            said = word.read(64) if poll.poll(HANG_GUARD * 1000) else b""
        if said != b"listening":
            self.kill()
            self.wait()
            raise AssertionError(f"The daemon does not listen: {self.errors}")

    def _begin(self, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Begin the process: one that has imported everything already, unless something is to run before that."""
        if not self.prelude:
            return Forked(self.patch + _PROGRAM, arguments, **options)
        return subprocess.Popen([sys.executable, "-P", "-c", self.prelude + _PROGRAM, *arguments], **options)

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def errors(self) -> str:
        """What it has written to standard output and standard error."""
        return self._errors.read_text(errors="replace")

    @property
    def log(self) -> str:
        return (self.home / "logs" / "daemon.log").read_text()

    # --- its end --------------------------------------------------------------------------------------------------

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        self.process.send_signal(number)

    def terminate(self) -> None:
        """SIGTERM: turns may finish."""
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()

    def crash(self) -> None:
        """Kill it; nothing of it is left."""
        family = self.family()
        self.kill()
        assert self.wait() == -signal.SIGKILL
        assert family.is_gone()

    def wait(self, timeout: float = HANG_GUARD) -> int:
        """Return its exit code, once it has ended; it does not outlive a failed wait.

        Raises:
            subprocess.TimeoutExpired: it had to be killed.
        """
        try:
            self.code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        return self.code

    @property
    def running(self) -> bool:
        """Whether it was started, and has not been seen to end."""
        return self._process is not None and self.code is None

    def end(self) -> bool:
        """End it if it runs, and wait for that; say whether none of its children is left."""
        if self.code is not None:
            return True
        family = self.family()
        self.terminate()
        try:
            self.code = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.terminate()
            self.wait()
        return family.is_gone()

    def children(self) -> list[int]:
        return children(self.pid)

    def family(self) -> Family:
        """Return its children as they are now, to be watched after its end."""
        return Family(self.children() if self.process.poll() is None else [])

    # --- clients --------------------------------------------------------------------------------------------------

    def connect(self) -> socket.socket:
        """Return a connection, which blocks, but never longer than the guard; the caller closes it."""
        connection = unix_socket.connect(str(self.socket))
        connection.settimeout(HANG_GUARD)
        return connection

    def lines(self, connection: socket.socket | None = None) -> "Lines":
        """Return raw JSON-RPC over a connection, a new one by default; use it in `with`."""
        return Lines(connection or self.connect())

    def client(self, **capabilities: Any) -> "Lines":
        """Return a new connection that has been initialized."""
        lines = self.lines()
        lines.initialize(**capabilities)
        return lines


class Lines:
    """One end of a connection: bytes out, JSON in. Every wait ends at the socket's timeout, as TimeoutError.

    Requests get the ids 1, 2, 3...; what arrives while one waits for its answer is kept in `heard`.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.heard: list[dict[str, Any]] = []
        self._file = connection.makefile("rb")
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.connection.close()

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def tell(self, message: Any) -> None:
        self.send(json.dumps(message).encode() + b"\n")

    def line(self) -> bytes:
        """Return one line as it came, with its end; b"" where the daemon has closed."""
        return self._file.readline()

    def read(self) -> Any:
        """Return one line as JSON.

        Raises:
            EOFError: the daemon has closed the connection.
        """
        line = self.line()
        if not line.endswith(b"\n"):
            raise EOFError(line)
        return json.loads(line)

    def notify(self, method: str, params: Any) -> None:
        self.tell({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Any) -> int:
        """Send a request; return its id."""
        self._number += 1
        self.tell({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def answer(self, number: int | None) -> dict[str, Any]:
        """Return the answer to a request, result or error, heard already or to come; keep what comes before it."""
        return self._next(lambda message: "method" not in message and message.get("id") == number)

    def request(self, method: str, params: Any) -> Any:
        """Send a request and return its result.

        Raises:
            AssertionError: the answer is an error.
        """
        return self.result(self.begin(method, params))

    def result(self, number: int | None) -> Any:
        """Return the result of a request that was made before.

        Raises:
            AssertionError: the answer is an error.
        """
        answer = self.answer(number)
        assert "error" not in answer, answer
        return answer["result"]

    def refused(self, method: str, params: Any) -> dict[str, Any]:
        """Send a request and return the error that answers it."""
        answer = self.answer(self.begin(method, params))
        assert "result" not in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    def until(self, method: str) -> dict[str, Any]:
        """Return the next request or notification of `method`, heard already or to come; keep what comes before it."""
        return self._next(lambda message: message.get("method") == method)

    def _next(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for number, message in enumerate(self.heard):
            if wanted(message):
                return self.heard.pop(number)
        while not wanted(message := self.read()):
            self.heard.append(message)
        found: dict[str, Any] = message
        return found

    def reply(self, asked: dict[str, Any], result: Any) -> None:
        """Answer a request of the daemon."""
        self.tell({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    # --- the protocol's first steps -------------------------------------------------------------------------------

    def initialize(self, **capabilities: Any) -> Any:
        return self.request("initialize", {"protocolVersion": schema.VERSION, "clientCapabilities": capabilities})

    def opened(self, cwd: Path, **options: Any) -> dict[str, Any]:
        """Open a session, and return what is said of it; the options stand as in `new_session`."""
        facts: dict[str, Any] = self.request("session/new", opening(cwd, **options))["_meta"][extensions.OPTIONS]
        return facts

    def new_session(self, cwd: Path, **options: Any) -> str:
        """Open a session; `options` are `supervisor.acp.extensions.SessionOptions`, spelt as in JSON."""
        session: str = self.opened(cwd, **options)["sessionId"]
        return session

    def begin_prompt(self, session: str, text: str) -> int:
        """Send a prompt; return the request's id."""
        return self.begin("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def prompt(self, session: str, text: str) -> Any:
        """Run a turn; return its result."""
        answer = self.answer(self.begin_prompt(session, text))
        assert "error" not in answer, answer
        return answer["result"]

    def load(self, session: str) -> Any:
        """Load a session, and hear of everything that it holds."""
        return self.request("session/load", named(session))

    def resume(self, session: str) -> dict[str, Any]:
        """Open a session again from an unlikely place; return what is said of it."""
        facts: dict[str, Any] = self.request("session/resume", named(session))["_meta"][extensions.OPTIONS]
        return facts

    def begin_tool(self, session: str, tool: str, **arguments: Any) -> int:
        """Ask for a call without a model; return the request's id."""
        params = {"sessionId": session, "tool": tool, "arguments": json.dumps(arguments)}
        return self.begin(extensions.CALL_METHOD, params)

    def call(self, session: str, tool: str, **arguments: Any) -> Any:
        """Run one tool without a model; return its answer."""
        answer = self.answer(self.begin_tool(session, tool, **arguments))
        assert "error" not in answer, answer
        return answer["result"]["answer"]

    def ask(self, root: Path, model: str) -> tuple[str, int, dict[str, Any]]:
        """Begin a turn with the profile `asking`, and wait for its question.

        Return the session, the prompt's id and the question.
        """
        session = self.new_session(root, model=model, profile="asking")
        return session, self.begin_prompt(session, "go"), self.until(ASK)

    def status(self) -> Any:
        return self.request(extensions.STATUS_METHOD, {})

    def begin_call(self, session: str) -> int:
        """Ask for a turn, and wait until its call runs; return the request's id."""
        prompt = self.begin_prompt(session, "go")
        self.until_update(session, "tool_call")
        return prompt

    def begin_held_call(self, root: Path, model: str) -> tuple[str, list[int], int]:
        """Begin a turn in a new session whose call does not end; return the session, the held workers, the request."""
        session = self.new_session(root, model=model)
        return session, self.hold_workers(root), self.begin_call(session)

    def begin_waiting(self, session: str) -> int:
        """Ask to be told of the end of the turn that runs, which the daemon then knows; return the request's id."""
        number = self.begin(extensions.CONTINUE_METHOD, {"sessionId": session})
        self.status()
        return number

    def choose(self, asked: dict[str, Any], option: str, **meta: Any) -> None:
        """Answer a question of the daemon by the id of an option."""
        self.reply(asked, {"outcome": {"outcome": "selected", "optionId": option}, "_meta": meta})

    def allow(self, asked: dict[str, Any]) -> None:
        """Say yes to a question of the daemon."""
        self.choose(asked, "allow_once")

    def ends_turn(self, number: int) -> bool:
        """Say whether a prompt is answered by a turn that has come to its end.

        Raises:
            AssertionError: the answer is an error.
        """
        return bool(self.result(number)["stopReason"] == "end_turn")

    def hold_workers(self, root: Path | None = None) -> list[int]:
        """Stop the workers, on a root or all, when they are ready, so that the next call does not end.

        Return their pids: who is stopped for ever holds up the daemon's end.
        """
        found: list[dict[str, Any]] = []

        def ready() -> bool:
            pools = self.status().get("pools", [])
            found[:] = [each for pool in pools if root in {None, Path(pool["root"])} for each in pool["workers"]]
            return bool(found) and all(worker["state"] == "READY" for worker in found)

        wait_until(ready)
        for worker in found:
            os.kill(worker["pid"], signal.SIGSTOP)
        return [worker["pid"] for worker in found]

    def until_update(self, session: str, kind: str) -> None:
        """Wait for an update of a kind, heard already or to come."""
        while kind not in [update["sessionUpdate"] for update in self.updates(session)]:
            self.heard.append(self.read())

    def messages(self, session: str) -> dict[str, str]:
        """Return what was told that anybody said: each message's text by its id, in order."""
        found: dict[str, str] = {}
        for update in self.updates(session):
            if update["sessionUpdate"].endswith("_message_chunk"):
                found[update["messageId"]] = found.get(update["messageId"], "") + update["content"]["text"]
        return found

    def updates(self, session: str) -> list[dict[str, Any]]:
        return [
            message["params"]["update"]
            for message in self.heard
            if message.get("method") == "session/update" and message["params"]["sessionId"] == session
        ]


def named(session: str) -> dict[str, Any]:
    """Return the parameters of opening a session again."""
    return {"sessionId": session, "cwd": "/", "mcpServers": []}


def opening(cwd: Path, **options: Any) -> dict[str, Any]:
    """Return the parameters of opening a session."""
    return {"cwd": str(cwd), "mcpServers": [], "_meta": {extensions.OPTIONS: options}}


def release(pids: Sequence[int]) -> None:
    """Let workers go on, those of them that were not ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def scripted(file: Path, *replies: dict[str, Any]) -> str:
    """Write the replies of a scripted model; return the name to use it by.

    A reply: {"text": "...", "calls": [{"tool": "read_file", "arguments": {"path": "a.md"}}]}, or as
    `supervisor.agent.models.scripted` says.
    """
    file.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    return f"scripted:{file}"
