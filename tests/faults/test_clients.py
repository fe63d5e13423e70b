"""Every fault of a client in the corpora, against one real daemon on its real socket.

Rows of lines are run by one interpreter: send, then compare who was answered what. The others are stories of
their own. After each, the daemon lives, answers another client, and has nothing open that it had not before.
"""

import base64
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.acp import extensions
from supervisor.daemon.protocol import outbox
from supervisor.daemon.protocol.connection import REQUEST_LIMIT
from supervisor.journal.facts import CallEnded, TurnEnded, TurnStarted
from tests.corpus_rows import rows, value
from tests.daemon_process import DaemonProcess, Lines, release, scripted
from tests.messages_server import MessagesServer, reply
from tests.script_server import Recorded
from tests.supervisor.command import HANG_GUARD, wait_until
from tests.supervisor.histories import ASKING, DONE, call, fault_in_facts

Row = dict[str, Any]

ROWS: Final = [row for row in rows("frames.json", "more_clients.json") if row["side"] == "client"]
OURS: Final = {
    "bad_request": {"bad_request"},
    "unknown_command": {"bad_request", "unknown_method"},
    "too_large": {"too_large"},
    "disconnected": {"disconnected"},
}
"""What the corpus's words are called here."""
PING: Final = {"protocolVersion": 1}
TOLD: Final = {"clientCapabilities": {"_meta": {extensions.CLIENT: True}}, **PING}
POOLS: Final = re.compile(r"pipe:|anon_inode:\[(pidfd|eventpoll)\]|.*/root$")
"""Descriptors of workers, of their roots and of what watches them, which a pool keeps for a while."""

_run: Final[set[str]] = set()


def story_of(*wanted: str) -> pytest.MarkDecorator:
    """Run a story for rows of the corpus."""
    _run.update(wanted)
    found = [row for row in ROWS if row["id"] in wanted]
    return pytest.mark.parametrize("row", found, ids=[f"{row['id']}-{row['class']}" for row in found])


def rows_of(steps: set[str]) -> pytest.MarkDecorator:
    """Run an interpreter for every row that consists of these steps."""
    return story_of(*(row["id"] for row in ROWS if all(set(step) <= steps for step in row["steps"])))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("clients")
    process = DaemonProcess(folder / "home", folder)
    process.configure(ASKING)
    with process as running:
        yield running
    assert "internal error" not in running.log


class Gate:
    """Holds the requests of a model's server while it is shut."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def __call__(self, _request: Recorded) -> None:
        self.reached.set()
        assert self.open.wait(HANG_GUARD)


class Talker(NamedTuple):
    """A daemon whose model is a server on the loopback."""

    daemon: DaemonProcess
    server: MessagesServer
    gate: Gate


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talker]:
    folder = tmp_path_factory.mktemp("talker")
    gate = Gate()
    with MessagesServer(on_request=gate) as server:
        environment = {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": server.url}
        with DaemonProcess(folder / "home", folder, **environment) as running:
            yield Talker(running, server, gate)


@pytest.fixture(scope="module")
def shared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root, and with it its workers, for rows that leave it as it is and stop nobody."""
    folder = tmp_path_factory.mktemp("shared") / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    return folder


@pytest.fixture(scope="module")
def warm(daemon: DaemonProcess, shared_root: Path) -> None:
    """The template of workers runs from here on with its socket, and what knows agents' files is open."""
    with daemon.client() as client:
        client.call(client.new_session(shared_root), "read_file", path="a.txt")


@pytest.fixture(autouse=True)
def unharmed(daemon: DaemonProcess, warm: None) -> Iterator[None]:
    """The daemon lives, answers others, and keeps nothing of what a test did."""
    with daemon.client() as other:
        settled(other)
        before = descriptors(daemon)
    yield
    with daemon.client() as other:
        settled(other)

        def grown() -> Counter[str]:
            return descriptors(daemon) - before

        wait_until(lambda: not grown(), grown)  # a worker that is just being started may have more
    assert daemon.process.poll() is None


def descriptors(daemon: DaemonProcess) -> Counter[str]:
    """Return what a process has open, by kind, except for its workers' pipes; only root can see that."""
    found: Counter[str] = Counter()
    for each in os.listdir(f"/proc/{daemon.pid}/fd") if not os.geteuid() else ():
        with suppress(FileNotFoundError):  # closed meanwhile
            target = os.readlink(f"/proc/{daemon.pid}/fd/{each}")
            if not POOLS.match(target):
                found[re.sub(r"\d+", "N", target)] += 1
    return found


def settled(client: Lines) -> None:
    """Wait until `client` is the only one, and no turn runs."""

    def alone() -> bool:
        status = client.status()
        return status["clients"] == 1 and {each["state"] for each in status["sessions"]} <= {"Input"}

    wait_until(alone, client.status)


def memory_mb(daemon: DaemonProcess) -> float:
    pages = int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def text_of(updates: list[dict[str, Any]]) -> str:
    return "".join(each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk")


# --- rows of lines ----------------------------------------------------------------------------------------------------


def message(given: Any) -> Any:
    """Return a message in our words."""
    match given:
        case {"cmd": "ping"}:
            return {"jsonrpc": "2.0", "id": "ping", "method": "initialize", "params": PING}
        case {"cmd": "send", "text": text}:
            params = {"sessionId": "x", "prompt": [{"type": "text", "text": text}]}
            return {"jsonrpc": "2.0", "id": "send", "method": "session/prompt", "params": params}
    return given


def play(client: Lines, step: dict[str, Any], names: dict[str, str]) -> None:
    match step:
        case {"raw_line": line}:
            client.send(value(line, names).encode() + b"\n")
        case {"raw_b64": data}:
            client.send(base64.b64decode(data))
        case {"raw_repeat": [text, times]}:
            client.send(text.encode() * times)
        case {"raw_line_parts": parts}:
            text = "".join(each if isinstance(each, str) else each[0] * each[1] for each in parts)
            client.send(text.encode() + b"\n")
        case {"line": given}:
            client.tell(message(value(given, names)))
        case {"repeat_line": [given, times]}:
            numbered = [{**given, "id": n} if "id" in given else given for n in range(2, times + 2)]
            client.send("".join(json.dumps(each) + "\n" for each in numbered).encode())
        case {"repeat_in_batch": [given, times]}:
            client.tell([given] * times)
        case {"hello": True}:
            client.initialize()
        case _:
            raise ValueError(step)


LINES: Final = {
    *("raw_line", "raw_b64", "raw_repeat", "raw_line_parts"),
    *("line", "repeat_line", "repeat_in_batch", "hello"),
}


def kind_of(answer: dict[str, Any]) -> str:
    return str(answer["error"]["data"]["kind"]) if "error" in answer else "ok"


def expected(row: Row) -> int:
    """Return how many answers there will be."""
    match row["expect"]:
        case "answers":
            return len(row["answers"])
        case "each_answered":
            return int(next(step["repeat_line"][1] for step in row["steps"] if "repeat_line" in step))
        case "error_then_ok":
            return 2
    return 1


def wanted(row: Row, answers: list[tuple[Any, str]]) -> bool:
    """Say whether requests were answered as a row wants it: (id, kind) each."""
    kinds = {kind for word in row.get("kind", ()) for kind in OURS.get(word, {word})}
    match row["expect"]:
        case "ok":
            return answers == [("ping", "ok")]
        case "error":
            return len(answers) == 1 and answers[0][1] in kinds
        case "error_then_ok":
            return len(answers) == 2 and answers[0][1] in kinds and answers[1] == ("ping", "ok")
        case "each_answered":
            numbers = sorted(number for number, _ in answers)
            return numbers == list(range(2, len(answers) + 2)) and {kind for _, kind in answers} == kinds
        case "answers":
            return Counter(answers) == Counter((value(number), kind) for number, kind in row["answers"])
    raise ValueError(row)


@rows_of(LINES)
def test_each_line_is_answered_as_its_row_says(row: Row, daemon: DaemonProcess, model: str, shared_root: Path) -> None:
    with daemon.client() as owner, daemon.lines() as client:
        names = {"$ROOT": str(shared_root)}
        if "$SESSION" in json.dumps(row):
            names["$SESSION"] = owner.new_session(shared_root, model=model)
        before = memory_mb(daemon)
        for step in row["steps"]:
            play(client, step, names)
        if "raw_repeat" in row["steps"][-1]:
            client.send(b"\n")
        answers: list[dict[str, Any]] = []
        while len(answers) < expected(row):
            answers += answers_in([client.read()])
        assert wanted(row, [(each["id"], kind_of(each)) for each in answers])
        client.heard.clear()
        client.initialize()  # one that was answered too often would say so before this
        assert answers_in(client.heard) == []
        assert memory_mb(daemon) - before < row.get("max_daemon_rss_growth_mb", 50)
        assert all(each["error"]["message"].isprintable() for each in answers if "error" in each)


def answers_in(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in messages if "method" not in each]


# --- approvals --------------------------------------------------------------------------------------------------------


@pytest.fixture
def awaiting_approval(tmp_path: Path) -> str:
    """A model that writes a file, which is asked about."""
    return scripted(tmp_path / "ask.jsonl", {"calls": [call("write_file", path="b.txt", content="x")]}, DONE)


@rows_of({"review"})
def test_only_a_clear_yes_is_a_yes(row: Row, daemon: DaemonProcess, awaiting_approval: str, shared_root: Path) -> None:
    (step,) = row["steps"]
    written = shared_root / "b.txt"
    written.unlink(missing_ok=True)
    with daemon.client(_meta={extensions.CLIENT: True}) as client:
        session, prompt, asked = client.ask(shared_root, awaiting_approval)
        assert asked["params"]["toolCall"]["rawInput"] == {"path": "b.txt", "content": "x"}
        for answer in step["review"]:
            client.tell({"jsonrpc": "2.0", "id": asked["id"], **answer})
        assert client.ends_turn(prompt)
        assert not any(each.get("method") == "session/request_permission" for each in client.heard)
    (ended,) = daemon.facts_of(session, CallEnded)
    assert (ended.kind or "ok") == row["call"]
    assert written.exists() == (row["call"] == "ok")


# --- slow, many, gone -------------------------------------------------------------------------------------------------


@story_of("F102")
def test_a_client_that_never_reads_is_dropped_and_delays_nobody(row: Row, talker: Talker, root: Path) -> None:
    events = row["steps"][2]["turn_with_events"]
    text = [f"{number:06}" + "." * 1800 for number in range(events)]
    talker.server.add(reply(text, [("read_file", {"path": "a.txt"})]), reply("Done."))
    far = threading.Event()
    with ExitStack() as stack:
        good, slow = (stack.enter_context(talker.daemon.client(_meta={extensions.CLIENT: True})) for _ in range(2))
        session = good.new_session(root, model="claude-test")
        slow.load(session)
        prompt = good.begin_prompt(session, "go")
        heard: list[bytes] = []

        def listen() -> None:
            size = 0
            while not heard or f'"id":{prompt},'.encode() not in heard[-1][:40]:
                heard.append(good.line())
                assert heard[-1]
                size += len(heard[-1])
                if size > outbox.LIMIT + 2 * 2**20:
                    far.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert far.wait(HANG_GUARD)
        *_, last = iter(slow.line, b"")
        listener.join(HANG_GUARD)
    assert json.loads(last)["method"] == extensions.DROPPED
    chunks = [json.loads(line)["params"]["update"] for line in heard if b'"agent_message_chunk"' in line]
    assert text_of(chunks) == "".join(text) + "Done."


@story_of("F103")
def test_a_client_that_sends_a_byte_at_a_time_holds_up_nobody(row: Row, daemon: DaemonProcess, root: Path) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PING}).encode() + b"\n"
    with daemon.lines() as slow, daemon.client() as other:
        for number in range(len(line)):
            slow.send(line[number : number + 1])
            other.status()
        assert slow.answer(1)["result"]["protocolVersion"] == 1


@story_of("F104")
def test_a_thousand_clients_are_served_or_told_why_not(row: Row, daemon: DaemonProcess) -> None:
    count = row["steps"][0]["connect"] + 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * count + 512), hard))
    words: Counter[str] = Counter()
    try:
        with ExitStack() as stack:
            clients = [stack.enter_context(daemon.lines()) for _ in range(count)]
            for client in clients:
                with suppress(BrokenPipeError):  # turned away already; the reason can still be read
                    client.tell({"jsonrpc": "2.0", "id": None, "method": "initialize", "params": PING})
                words[kind_of(client.read())] += 1
            assert words["ok"] >= 1000
            assert set(words) == {"ok", "too_many_clients"}
            assert clients[0].status()["clients"] == words["ok"]
            for client in clients[1:]:
                client.close()
            settled(clients[0])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@story_of("F105")
def test_clients_that_come_and_go_leave_nothing_behind(row: Row, daemon: DaemonProcess) -> None:
    before = memory_mb(daemon)
    for number in range(row["steps"][0]["connect_close"] // 8):
        with daemon.connect() as connection:
            if number % 10 == 0:
                connection.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
    assert memory_mb(daemon) - before < 20


@story_of("F106")
def test_a_turn_goes_on_when_its_client_leaves_while_the_model_is_asked(row: Row, talker: Talker, root: Path) -> None:
    talker.server.add(reply("All of it."))
    talker.gate.reached.clear()
    talker.gate.open.clear()
    with talker.daemon.client() as gone:
        session = gone.new_session(root, model="claude-test")
        gone.begin_prompt(session, "go")
        assert talker.gate.reached.wait(HANG_GUARD)
    with talker.daemon.client() as other:
        other.load(session)
        end = other.begin_waiting(session)
        talker.gate.open.set()
        assert other.ends_turn(end)
        assert text_of(other.updates(session)) == "All of it."
    assert fault_in_facts(talker.daemon.sessions[session]) is None


@story_of("F107")
def test_a_turn_goes_on_when_its_client_leaves_during_a_call(
    row: Row, daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as gone:
        session, held, _ = gone.begin_held_call(root, model)
    with daemon.client() as other:
        other.load(session)
        end = other.begin_waiting(session)
        release(held)
        assert other.ends_turn(end)
        assert text_of(other.updates(session)) == "I look.Done."
    assert [fact.ok for fact in daemon.facts_of(session, CallEnded)] == [True]


@story_of("F108")
def test_a_question_waits_for_another_client_when_the_first_one_leaves(
    row: Row, daemon: DaemonProcess, awaiting_approval: str, root: Path
) -> None:
    with daemon.client() as gone:
        session, _, _ = gone.ask(root, awaiting_approval)
    with daemon.client() as other:
        other.load(session)
        asked = other.until("session/request_permission")
        end = other.begin_waiting(session)
        other.allow(asked)
        assert other.ends_turn(end)
    assert (root / "b.txt").read_text() == "x"


@story_of("F109")
def test_a_client_that_only_listens_any_more_still_gets_its_answer(
    row: Row, daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as client:
        session, held, prompt = client.begin_held_call(root, model)
        client.connection.shutdown(socket.SHUT_WR)
        release(held)
        assert client.ends_turn(prompt)
        assert text_of(client.updates(session)) == "I look.Done."
        assert client.line() == b""


@story_of("F110")
def test_of_two_prompts_at_once_one_runs_and_one_is_refused(
    row: Row, daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as one, daemon.client() as two:
        session = one.new_session(root, model=model)
        two.load(session)
        numbers = [client.begin_prompt(session, "go") for client in (one, two)]
        kinds = [kind_of(client.answer(number)) for client, number in zip((one, two), numbers, strict=True)]
    assert sorted(kinds) == ["busy", "ok"]
    assert [fact.turn for fact in daemon.facts_of(session, TurnStarted)] == [1]
    assert fault_in_facts(daemon.sessions[session]) is None


@story_of("F111")
def test_a_cancelled_call_has_its_outcome_and_the_history_stays_valid(
    row: Row, daemon: DaemonProcess, tmp_path: Path, root: Path
) -> None:
    writes = [call("write_file", path=path, content="x") for path in ("b.txt", "c.txt")]  # one after the other
    model = scripted(tmp_path / "three.jsonl", {"text": "Three.", "calls": [*writes, call("nope")]}, DONE)
    with daemon.client() as client:
        session, held, prompt = client.begin_held_call(root, model)
        client.notify("session/cancel", {"sessionId": session})
        assert client.answer(prompt)["result"]["stopReason"] == "cancelled"
        release(held)
        facts = daemon.sessions[session]
        assert fault_in_facts(facts) is None
        ends = sorted((fact.tool, fact.kind) for fact in facts if isinstance(fact, CallEnded))
        assert ends == [("nope", "unknown_tool"), *[("write_file", "cancelled")] * 2]
        assert client.prompt(session, "again")["stopReason"] == "end_turn"


def test_in_the_middle_of_a_turn_everything_else_is_answered_or_refused(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as owner, daemon.client() as other:
        session, held, prompt = owner.begin_held_call(root, model)
        named = {"sessionId": session}
        for method, params in (
            ("session/prompt", {"prompt": [{"type": "text", "text": "me too"}]}),
            ("session/set_config_option", {"configId": "profile", "value": "project"}),
            ("session/set_config_option", {"configId": "model", "value": "offline"}),
            (extensions.CALL_METHOD, {"tool": "read_file", "arguments": "{}"}),
        ):
            assert other.refused(method, named | params)["data"]["kind"] == "busy"
        other.load(session)
        assert session in {each["sessionId"] for each in other.request("session/list", {})["sessions"]}
        release(held)
        assert owner.ends_turn(prompt)
    assert fault_in_facts(daemon.sessions[session]) is None


def test_requests_beyond_the_limit_and_under_a_taken_id_are_refused_and_the_others_go_on(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with daemon.client() as client:
        session, held, prompt = client.begin_held_call(root, model)
        waiting = {"jsonrpc": "2.0", "method": extensions.CONTINUE_METHOD, "params": {"sessionId": session}}
        client.tell({**waiting, "id": prompt})
        assert kind_of(client.answer(prompt)) == "duplicate_id"
        for number in range(REQUEST_LIMIT + 10):
            client.tell({**waiting, "id": f"x{number}"})
        refused = answers_in([client.read() for _ in range(11)])
        assert {kind_of(answer) for answer in refused} == {"too_many_requests"}
        assert {answer["id"] for answer in refused} == {f"x{REQUEST_LIMIT - 1 + number}" for number in range(11)}
        release(held)
        answered: set[Any] = set()
        while len(answered) < REQUEST_LIMIT:
            answered |= {answer["id"] for answer in answers_in([client.read()]) if kind_of(answer) == "ok"}
    assert answered == {prompt, *(f"x{number}" for number in range(REQUEST_LIMIT - 1))}


def test_a_session_that_many_close_and_delete_at_once_is_closed_and_deleted(
    daemon: DaemonProcess, model: str, root: Path
) -> None:
    with ExitStack() as stack:
        owner, *others = (stack.enter_context(daemon.client()) for _ in range(6))
        session, held, prompt = owner.begin_held_call(root, model)
        daemon.signal(signal.SIGSTOP)  # so that all of it arrives together
        methods = ["session/close"] * 3 + ["session/delete"] * 2
        numbers = [other.begin(method, {"sessionId": session}) for other, method in zip(others, methods, strict=True)]
        daemon.signal(signal.SIGCONT)
        answers = [kind_of(other.answer(number)) for other, number in zip(others, numbers, strict=True)]
        assert set(answers[:3]) <= {"ok", "not_found"}
        assert answers[3:] == ["ok", "ok"]
        assert owner.answer(prompt)["result"]["stopReason"] == "cancelled"
        release(held)
        assert owner.refused("session/load", {"sessionId": session, "cwd": "/"})["data"]["kind"] == "not_found"
    assert fault_in_facts(daemon.sessions[session]) is None


def test_a_cancelled_request_for_a_prompt_cancels_its_turn(daemon: DaemonProcess, model: str, root: Path) -> None:
    with daemon.client() as client:
        session, held, prompt = client.begin_held_call(root, model)
        client.notify("$/cancel_request", {"requestId": prompt})
        assert client.answer(prompt)["result"]["stopReason"] == "cancelled"
        release(held)
    assert [fact.status for fact in daemon.facts_of(session, TurnEnded)] == ["cancelled"]


# --- who may ----------------------------------------------------------------------------------------------------------


STRANGER: Final = """
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
try:
    client.connect(sys.argv[1])
    client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\\n')
except PermissionError:
    print("PermissionError")
    sys.exit()
except BrokenPipeError:
    pass
print(client.makefile().readline())
"""


def as_a_stranger(path: Path) -> str:
    """Return what another user gets who connects to a socket."""
    command = [sys.executable, "-I", "-c", STRANGER, str(path)]
    return subprocess.check_output(command, text=True, timeout=HANG_GUARD).strip()


root_only: Final = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(scope="module")
def reachable() -> Iterator[DaemonProcess]:
    """A daemon in a directory that others may walk through; only its own home keeps them out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with DaemonProcess(folder / "home", folder) as running:
            yield running


@root_only
@story_of("F112")
def test_another_user_does_not_get_to_the_socket(row: Row, reachable: DaemonProcess) -> None:
    assert as_a_stranger(reachable.socket) == "PermissionError"


@root_only
def test_another_user_who_gets_to_the_socket_is_refused_by_the_kernel_s_word_alone(reachable: DaemonProcess) -> None:
    reachable.home.chmod(0o755)
    reachable.socket.chmod(0o666)
    try:
        refusal = json.loads(as_a_stranger(reachable.socket))
    finally:
        reachable.socket.chmod(0o600)
        reachable.home.chmod(0o700)
    assert refusal["error"]["data"]["kind"] == "permission_denied"
    assert "refused a process" in reachable.log


@story_of("F113")
def test_a_link_in_the_place_of_the_socket_is_not_followed(row: Row, home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "daemon.sock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AssertionError, match="is a symbolic link"):
        DaemonProcess(home, tmp_path).start()
    assert (home / "daemon.sock").is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_every_row_of_a_client_is_run() -> None:
    assert _run == {row["id"] for row in ROWS}
