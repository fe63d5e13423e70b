"""`strongroom acp`: the daemon's lines on standard input and output, and nothing else there."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.acp import schema
from supervisor.version import VERSION
from tests.daemon_process import DaemonProcess
from tests.supervisor.categories.homes import make
from tests.supervisor.command import HANG_GUARD, Strongroom, children, finished
from workers import kernel
from workers.confine.syscalls import NUMBERS


class Editor:
    """What an editor does with an agent's standard input and output."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        assert process.stdin
        assert process.stdout
        self.stdin, self.stdout = process.stdin, process.stdout

    def send(self, number: int, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def answer(self, number: int) -> Any:
        while (message := json.loads(self.stdout.readline())).get("id") != number:
            assert message["method"] == "session/update"
        return message["result"]

    def initialize(self) -> Any:
        self.send(1, "initialize", protocolVersion=schema.VERSION)
        return self.answer(1)


@pytest.fixture
def editor(daemon: DaemonProcess, place: Path) -> Iterator[Editor]:
    with Strongroom(daemon.home, place).start("acp") as process:
        yield Editor(process)
        process.kill()


def test_a_conversation_goes_through_and_what_was_asked_is_answered(
    editor: Editor, daemon: DaemonProcess, place: Path
) -> None:
    assert editor.initialize()["_meta"]["_strongroom/daemon"]["pid"] == daemon.pid
    options = {"_strongroom/session": {"model": "offline"}}
    editor.send(2, "session/new", cwd=str(place), mcpServers=[], _meta=options)
    session = editor.answer(2)["sessionId"]
    text = "read a.txt; " + "x" * 200_000
    editor.send(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
    editor.stdin.close()
    assert editor.answer(3)["stopReason"] == "end_turn"
    assert editor.stdout.read() == b""
    assert editor.process.wait(HANG_GUARD) == 0


def test_sessions_have_the_programs_of_the_editor_and_not_of_the_daemon(daemon: DaemonProcess, place: Path) -> None:
    """Also where it opens one again; what it says itself of one session counts for that."""
    make(place.parent, ["tools/bin/of-the-editor", "own/bin/of-the-session", "source/x = x"])
    root = place.parent / "source"
    command = {"tool": "run_cmd", "arguments": json.dumps({"command": "command -v of-the-editor of-the-session"})}

    def path(name: str) -> dict[str, str]:
        return {"PATH": f"{place.parent}/{name}/bin:/usr/bin:/bin"}

    client = Strongroom(daemon.home, place)
    client.environment |= path("tools")
    with client.start("acp") as process:
        editor = Editor(process)
        editor.initialize()
        options = {"profile": "code", "model": "offline", "modelless": True}
        found = []
        for number, more in enumerate([{}, {"variables": path("own")}], 2):
            meta = {"_strongroom/session": options | more}
            editor.send(number, "session/new", cwd=str(root), mcpServers=[], _meta=meta)
            session = editor.answer(number)["sessionId"]
            editor.send(number + 10, "_strongroom/call", sessionId=session, **command)
            found.append(editor.answer(number + 10))
        process.kill()
    assert "tools/bin/of-the-editor" in str(found[0])
    assert "own/bin/of-the-session" in str(found[1])


def test_bytes_are_not_touched(editor: Editor) -> None:
    editor.initialize()
    editor.stdin.write(b'\xff\n[]\n{"jsonrpc": "2.0", "id": "\\u00e9\xc3\xa9", "method": "no/such"}\n')
    editor.stdin.close()
    first, second, third = [json.loads(editor.stdout.readline()) for _ in range(3)]
    assert (first["error"]["code"], second["error"]["code"]) == (-32700, -32600)
    assert (third["id"], third["error"]["code"]) == ("éé", -32601)
    assert editor.process.wait(HANG_GUARD) == 0


def test_an_editor_that_goes_away_ends_it(editor: Editor) -> None:
    editor.initialize()
    editor.stdout.close()
    assert editor.process.wait(HANG_GUARD) == 1  # its input is still open


def test_a_daemon_that_goes_away_ends_it(strongroom: Strongroom, root: Path) -> None:
    with DaemonProcess(strongroom.home, strongroom.folder) as daemon:
        process = strongroom.start("acp")
        Editor(process).initialize()
        daemon.kill()
        daemon.wait()
        process.wait(HANG_GUARD)  # before its input ends, which would be a reason of its own
        done = finished(process)
    assert (done.code, done.out, done.err) == (1, "", "error: The daemon has closed the connection.\n")


def test_a_daemon_is_started_where_none_runs_and_stopped_on_demand(strongroom: Strongroom, root: Path) -> None:
    editor = Editor(strongroom.start("acp"))
    try:
        pid = editor.initialize()["_meta"]["_strongroom/daemon"]["pid"]
        assert children(editor.process.pid) == []
        assert finished(editor.process).code == 0
    finally:
        done = strongroom.run("daemon", "--stop")
    assert (done.code, done.out, done.err) == (0, "", f"the daemon (pid {pid}) has ended\n")
    assert strongroom.run("daemon", "--stop").err == "no daemon runs\n"


def test_a_daemon_of_another_version_is_told_of_on_standard_error_alone(strongroom: Strongroom, root: Path) -> None:
    daemon = DaemonProcess(strongroom.home, strongroom.folder)
    daemon.prelude = "import supervisor.version; supervisor.version.VERSION = '9.9'\n"
    with daemon:
        done = strongroom.run("acp", stdin=FIRST)
        assert done.err.startswith(f"note: The daemon that runs (pid {daemon.pid}) is version 9.9, this is {VERSION}. ")
    assert [line["id"] for line in done.lines] == [7]


FIRST = b'{"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": 1}}\n'
SECOND = b'{"jsonrpc": "2.0", "id": 8, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}\n'


def test_a_daemon_that_cannot_start_is_an_answer(strongroom: Strongroom) -> None:
    """The agent says who it is all the same: whoever lists agents asks no more, in a container that has nothing."""
    strongroom.configure("=")
    done = strongroom.run("acp", stdin=b'{"jsonrpc": "2.0", "method": "x"}\n' + FIRST + SECOND * 2)
    assert (done.code, done.err[:7]) == (2, "error: ")
    introduced, refused = done.lines
    assert introduced == {"jsonrpc": "2.0", "id": 7, "result": introduced["result"]}
    assert introduced["result"]["agentInfo"]["version"] == VERSION
    assert (refused["id"], refused["error"]["data"]["kind"]) == (8, "config")
    assert refused["error"]["message"] in done.err
    assert strongroom.run("acp").out == ""


def test_what_no_client_can_say_is_refused_there_too(strongroom: Strongroom) -> None:
    strongroom.configure("=")
    wrong = FIRST.replace(b"1}", b'"one"}')
    codes = [line["error"]["code"] for line in strongroom.run("acp", stdin=wrong + b"{\n" + FIRST).lines]
    assert codes == [-32602, -32603]


def test_it_introduces_itself_on_a_kernel_without_any_protection_and_in_an_empty_environment(
    strongroom: Strongroom, root: Path
) -> None:
    calls = ",".join(str(NUMBERS[kernel.MACHINE][each]) for each in PROTECTIONS)
    strongroom.environment = {"HOME": str(strongroom.folder)}
    bare = "tests.supervisor.lacking", calls
    (line,) = strongroom.run("acp", stdin=FIRST.replace(b"1}", ABLE), program=bare).lines
    strongroom.run("daemon", "--stop")
    assert [each["type"] for each in line["result"]["authMethods"]] == ["terminal"]


def test_an_editor_that_adds_the_login_to_its_command_means_the_login(strongroom: Strongroom) -> None:
    added, plain = (strongroom.run(*command, "login", "--help") for command in [["acp"], []])
    assert (added.code, added.out, added.err) == (plain.code, plain.out, plain.err)


PROTECTIONS = (
    *("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "unshare", "setns", "mount"),
    *("clone3", "openat2", "pidfd_open", "memfd_create", "pivot_root"),
)
ABLE = b'1, "clientCapabilities": {"terminal": true, "_meta": {"terminal_output": true, "terminal-auth": true}}}'
"""What the protocol's registry says that it can do, when it tries an agent."""
