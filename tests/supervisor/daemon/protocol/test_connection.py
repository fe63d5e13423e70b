"""One client's connection: a long history arrives whole, and neither that nor junk keeps others waiting."""

import json
import os
import socket
from pathlib import Path
from typing import Final

import pytest
import trio

from supervisor.acp import extensions, jsonrpc
from supervisor.daemon.protocol.connection import ClientRequest, Connection
from supervisor.journal.facts import CallEnded, CallStarted, Fact, Replied, TurnEnded, TurnStarted
from tests.daemon_process import DaemonProcess, Lines, named
from tests.each_row import each_row
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import opening_fact

LARGE: Final = "20260101-000001-aaaaaaaaaaaa"
"""A session with a few large calls."""
LONG: Final = "20260101-000002-aaaaaaaaaaaa"
"""A session with many small turns."""
WRITES: Final = 45
SIZE: Final = 400_000
TURNS: Final = 2000


def large(root: Path) -> list[Fact]:
    facts: list[Fact] = [opening_fact(root, "offline", "project", "read_file", "write_file"), TurnStarted(1, "go")]
    for number in range(WRITES):
        given = {"path": f"{number}.txt", "content": "x" * SIZE}
        use = {"type": "tool_use", "id": f"call_{number}", "name": "write_file", "input": given}
        facts += [
            Replied(1, number, [use], "tool_use", {}),
            CallStarted(1, f"call_{number}", "write_file", json.dumps(given), True, "allow", "allowed"),
            CallEnded(1, f"call_{number}", "write_file", True, "written"),
        ]
    return [*facts, TurnEnded(1, "ok", "")]


def long(root: Path) -> list[Fact]:
    facts: list[Fact] = [opening_fact(root, "offline", "project", "read_file", "write_file")]
    for turn in range(1, TURNS + 1):
        use = {"type": "tool_use", "id": f"call_{turn}", "name": "read_file", "input": {"path": "a.txt"}}
        facts += [
            TurnStarted(turn, "go"),
            Replied(turn, turn, [use], "tool_use", {}),
            CallStarted(turn, f"call_{turn}", "read_file", '{"path":"a.txt"}', False, "allow", "allowed"),
            CallEnded(turn, f"call_{turn}", "read_file", True, "hello"),
            TurnEnded(turn, "ok", "hello"),
        ]
    return facts


@pytest.fixture(scope="module", autouse=True)
def _left(stopped: DaemonProcess) -> None:
    """Two sessions that take a while to load."""
    root = stopped.folder / "root"
    root.mkdir()
    stopped.record(LARGE, *large(root))
    stopped.record(LONG, *long(root))


def calls(client: Lines, session: str) -> dict[str, list[str]]:
    """Return what a client was told of each call: its states, in order."""
    found: dict[str, list[str]] = {}
    for update in client.updates(session):
        if "toolCallId" in update:
            found.setdefault(update["toolCallId"], []).append(update["status"])
    return found


# --- histories --------------------------------------------------------------------------------------------------------


def test_a_session_of_large_calls_arrives_whole_at_a_client_that_reads(client: Lines) -> None:
    client.load(LARGE)
    assert calls(client, LARGE) == {f"call_{number}": ["in_progress", "completed"] for number in range(WRITES)}
    sizes = {len(each["rawInput"]["content"]) for each in client.updates(LARGE) if "rawInput" in each}
    assert sizes == {SIZE}


def test_others_are_answered_while_a_large_session_is_loaded(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as slow, daemon.client() as other:
        number = slow.begin("session/load", named(LARGE))
        slow.heard.append(slow.read())  # it has begun, and the rest does not fit between us
        assert other.status()["clients"] == 2
        other.prompt(other.new_session(root, model="offline"), "hello")
        assert "result" in slow.answer(number)
        assert len(calls(slow, LARGE)) == WRITES


def test_a_session_of_thousands_of_facts_is_resumed_loaded_and_deleted(client: Lines) -> None:
    client.resume(LONG)
    assert client.updates(LONG) == []
    client.load(LONG)
    assert len(calls(client, LONG)) == TURNS
    client.request("session/delete", {"sessionId": LONG})
    assert client.refused("session/load", named(LONG))["data"]["kind"] == "not_found"
    assert LONG not in {each["sessionId"] for each in client.request("session/list", {})["sessions"]}


# --- what is no message -----------------------------------------------------------------------------------------------

JUNK: Final = (b"[" + b",".join([b"1"] * jsonrpc.BATCH_LIMIT) + b"]\n") * 32
PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'


class Counting(Connection):
    """Counts what it says."""

    said = 0

    def send(self, line: bytes) -> None:
        self.said += 1
        super().send(line)


async def test_between_the_answers_to_a_flood_of_junk_it_is_the_others_turn() -> None:
    served = trio.Event()

    async def serve(_request: ClientRequest) -> dict[str, str]:
        await trio.lowlevel.checkpoint()
        served.set()
        return {}

    def note(_client: Connection, _notification: jsonrpc.Notification) -> None:
        raise AssertionError

    here, there = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
    connection = Counting(there, serve, note)

    async def send() -> None:
        await here.send_all(JUNK + PING)

    async def read() -> None:
        async for _ in here:
            pass

    at_most = before = 0
    with trio.fail_after(HANG_GUARD):
        async with here, trio.open_nursery() as nursery:
            for task in (connection.run, send, read):
                nursery.start_soon(task)
            while not served.is_set() and not connection.closed.is_set():
                await trio.lowlevel.checkpoint()
                at_most, before = max(at_most, connection.said - before), connection.said
            nursery.cancel_scope.cancel()
    assert 0 < at_most <= jsonrpc.BATCH_LIMIT


NO_ANSWERS: Final = {
    "an error without a code": b'{"jsonrpc":"2.0","id":"ask-1","error":{"message":"no"}}',
    "an error that is a number": b'{"jsonrpc":"2.0","id":"ask-1","error":5}',
    "an error without an id": b'{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}',
    "a result without an id": b'{"jsonrpc":"2.0","result":{}}',
    "a result without a version": b'{"id":1,"result":{}}',
    "a result under an array": b'{"jsonrpc":"2.0","id":[1],"result":{}}',
    "a result and an error": b'{"jsonrpc":"2.0","id":9999,"result":null,"error":null}',
    "a batch of them": b'[{"jsonrpc":"2.0","result":{}},{"jsonrpc":"2.0","id":1,"error":5}]',
}


@each_row("line", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_a_line_that_wants_to_be_an_answer_is_never_answered(daemon: DaemonProcess, line: bytes) -> None:
    with daemon.lines() as client:
        client.send(line + b"\n")
        client.initialize()
        assert client.heard == []


# --- who answers ------------------------------------------------------------------------------------------------------


def install(folder: Path, version: str) -> None:
    """Put another version of the package's metadata in the place of the last one."""
    for each in folder.glob("*.dist-info"):
        (each / "METADATA").unlink()
        each.rmdir()
    found = folder / f"strongroom-{version}.dist-info"
    found.mkdir()
    (found / "METADATA").write_text(f"Metadata-Version: 2.1\nName: strongroom\nVersion: {version}\n")
    at = int(version.rpartition(".")[2])
    os.utime(folder, (at, at))  # what is remembered of a directory counts until its time changes


def test_a_running_daemon_tells_the_version_that_it_was_started_as(home: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    install(installed, "0.0.1")
    daemon = DaemonProcess(home, tmp_path)
    daemon.prelude = f"import sys; sys.path.insert(0, {str(installed)!r})\n"
    with daemon, daemon.lines() as before, daemon.lines() as after:
        told = [before.initialize()]
        install(installed, "0.0.2")
        told.append(after.initialize())
    assert len({each["agentInfo"]["version"] for each in told}) == 1
    assert len({each["_meta"][extensions.DAEMON]["version"] for each in told}) == 1
