"""`strongroom call` as scripts use it: one call, or a stream of them."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.acp import extensions
from supervisor.clients.call import approve_shown
from supervisor.journal.facts import CallEnded, CallStarted, SessionOpened
from tests.daemon_process import DaemonProcess
from tests.forked import ForkedStrongroom
from tests.supervisor.clients.shared import Guest, asked
from tests.supervisor.command import Family, Strongroom, children, finished

NEW: Final = ("write_file", '{"path": "new.txt", "content": ""}')
ASKS: Final = "[profiles.vault]\nask = ['write_file']\n"


class Way(NamedTuple):
    name: str
    tool: str
    arguments: str
    code: int
    kind: str | None
    words: str


WAYS: Final = [
    Way("good", "read_file", '{"path": "a.txt"}', 0, None, "hello\n"),
    Way("escape", "read_file", '{"path": "../x"}', 1, "path_escape", "Path escape"),
    Way("absolute", "read_file", '{"path": "/etc/passwd"}', 1, "path_escape", "Access denied"),
    Way("missing", "read_file", '{"path": "x"}', 1, "not_found", "x"),
    Way("directory", "read_file", '{"path": "."}', 1, "not_a_file", ""),
    Way("protected", "write_file", '{"path": ".envrc", "content": ""}', 1, "permission_denied", ".envrc"),
    Way("no match", "edit_file", '{"path": "a.txt", "old": "x", "new": "y"}', 1, "no_match", ""),
    Way("bad JSON", "read_file", "{path: a}", 1, "invalid_arguments", "Send one JSON object"),
    Way("an unknown argument", "read_file", '{"path": "a", "force": true}', 1, "invalid_arguments", "force"),
    Way("an unknown tool", "exec_shell", "{}", 1, "unknown_tool", "There is no tool 'exec_shell' here"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Strongroom, DaemonProcess]]:
    """A command line where a daemon runs."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "root").mkdir()
    (folder / "root" / "a.txt").write_text("hello\n")
    with DaemonProcess(folder / "home", folder) as daemon:
        yield ForkedStrongroom(folder / "home", folder), daemon


@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_one_call_is_answered_with_a_document(served: tuple[Strongroom, DaemonProcess], way: Way) -> None:
    done = served[0].run("call", way.tool, way.arguments, "--root", "root")
    assert (done.code, done.err) == (way.code, "")
    assert done.json["ok"] == (way.kind is None)
    assert done.json.get("error", {}).get("kind") == way.kind
    assert way.words in (done.json["error"]["message"] if way.kind else done.json["content"])


def test_a_structured_result_is_json_in_the_document(served: tuple[Strongroom, DaemonProcess]) -> None:
    done = served[0].run("call", "list_files", '{"pattern": "**"}', "--root", "root")
    assert done.json == {"ok": True, "content": ["a.txt"]}


def test_a_call_is_in_the_journal(guest: Guest, root: Path) -> None:
    guest.run("call", "read_file", '{"path": "a.txt"}', "--root", "root")
    opened, started, ended = guest.facts
    assert isinstance(opened, SessionOpened)
    assert (opened.origin, opened.model) == ("call", "")
    assert isinstance(started, CallStarted)
    assert isinstance(ended, CallEnded)
    assert (started.call, ended.call, ended.ok) == ("call_1", "call_1", True)


def test_a_daemon_that_runs_makes_the_call(served: tuple[Strongroom, DaemonProcess]) -> None:
    strongroom, _ = served
    with strongroom.start(*STREAM) as process:
        assert answer(process, lines(READ))["ok"]
        assert children(process.pid) == []
        assert finished(process).code == 0


def test_a_call_that_nobody_waits_for_is_cancelled(served: tuple[Strongroom, DaemonProcess]) -> None:
    strongroom, daemon = served
    assert strongroom.run("call", *NEW, "--root", "root").code == 0  # from here on a worker is ready
    for pid in daemon.children():
        os.kill(pid, signal.SIGSTOP)
    with strongroom.start("call", *NEW, "--root", "root") as process:
        while not isinstance(strongroom.facts[-1], CallStarted):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert finished(process).code == 130
    for pid in daemon.children():
        os.kill(pid, signal.SIGCONT)
    assert strongroom.run("call", "read_file", '{"path": "a.txt"}', "--root", "root").code == 0
    kinds = [fact.kind for fact in strongroom.facts if isinstance(fact, CallEnded) and fact.tool == "write_file"]
    assert kinds[-2:] == [None, "cancelled"]


APPROVALS: Final[list[tuple[list[str], int, bool]]] = [([], 1, False), (["--approve"], 0, True)]


@pytest.mark.parametrize(("options", "code", "written"), APPROVALS, ids=["nobody is asked", "--approve"])
def test_a_call_that_asks_is_denied_unless_approved_beforehand(
    strongroom: Strongroom, home: Path, root: Path, options: list[str], code: int, written: bool
) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(ASKS)
    given = '{"path": "new.txt", "content": "x"}'
    done = strongroom.run("call", "write_file", given, "--root", "root", *options)
    assert done.code == code
    assert done.json.get("error", {}).get("kind") == (None if written else "denied")
    assert (root / "new.txt").exists() == written


def test_approve_commits_what_a_rehearsal_has_shown(served: tuple[Strongroom, DaemonProcess]) -> None:
    touch = ("call", "exec_shell", '{"command": "touch", "args": ["touched.txt"]}', "--profile", "project")
    touched = served[0].folder / "root" / "touched.txt"
    denied = served[0].run(*touch, "--root", "root")
    assert denied.json["error"]["kind"] == "denied"
    assert "touched.txt" in denied.json["error"]["message"]
    assert not touched.exists()
    assert served[0].run(*touch, "--root", "root", "--approve").code == 0
    assert touched.exists()


STAGES: Final[list[tuple[extensions.Stage, str]]] = [
    ("call", "allow_once"),
    ("effects", "allow_once"),
    ("network", "allow_once"),
    ("direct", "reject_once"),
]


@pytest.mark.parametrize(("stage", "answer"), STAGES)
def test_approve_says_yes_once_and_never_to_what_nobody_has_seen(stage: extensions.Stage, answer: str) -> None:
    question, answers = asked(tool="exec_shell", arguments="{}", stage=stage, covers="RULE", escalation=True)
    approve_shown(question)
    (given,) = answers
    assert given.outcome.option_id == answer
    assert not {extensions.SCOPE, extensions.UNCONFINED} & set(given.meta or {})


def test_approve_does_not_reach_beyond_the_profile(guest: Guest, root: Path) -> None:
    done = guest.run("call", "list_directory", '{"path": "."}', "--root", "root", "--approve")
    assert done.json["error"]["kind"] == "unknown_tool"


def test_a_read_only_profile_has_no_tools_that_write(strongroom: Strongroom, home: Path, root: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[profiles.vault]\nwritable = false\n")
    done = strongroom.run("call", "write_file", '{"path": "x", "content": ""}', "--root", "root")
    assert done.json["error"]["kind"] == "unknown_tool"
    assert not (root / "x").exists()


# a stream of calls -------------------------------------------------------------------------------------------


READ: Final = {"id": 1, "tool": "read_file", "arguments": {"path": "a.txt"}}
STREAM: Final = ("call", "--stdin", "--root", "root")


def lines(*questions: Any) -> str:
    return "".join(json.dumps(question) + "\n" for question in questions)


def test_answers_come_in_the_order_of_the_questions(guest: Guest, root: Path) -> None:
    for number in range(20):
        (root / f"{number}.txt").write_text(str(number))
    questions = [{"id": n, "tool": "read_file", "arguments": {"path": f"{n}.txt"}} for n in range(20)]
    done = guest.run(*STREAM, stdin=lines(*questions))
    assert done.code == 0
    assert [(line["id"], line["content"]) for line in done.lines] == [(n, str(n)) for n in range(20)]


IDS: Final = [
    "1",
    '"x"',
    "null",
    "true",
    "1.50",
    "[1, {}]",
    '{"a": [null]}',
    "123456789012345678901234567890",
    '"\\u001b"',
]


@pytest.fixture(scope="module")
def one_room(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """A command line for rows that are all answered by one process."""
    folder = tmp_path_factory.mktemp("room")
    (folder / "root").mkdir()
    (folder / "root" / "a.txt").write_text("hello\n")
    return ForkedStrongroom(folder / "home", folder)


def test_an_id_comes_back_whatever_json_it_is(one_room: Strongroom) -> None:
    rest = '"tool": "read_file", "arguments": {"path": "a.txt"}'
    done = one_room.run(*STREAM, stdin="".join(f'{{"id": {each}, {rest}}}\n' for each in IDS))
    for number, line in zip(IDS, done.out.splitlines(), strict=True):
        assert line.startswith(f'{{"id":{number},"ok":true')


def test_a_line_that_fails_is_answered_with_its_kind(guest: Guest, root: Path) -> None:
    questions = [{**READ, "arguments": {"path": "../x"}}, {**READ, "id": 2, "tool": "nothing"}, {**READ, "id": 3}]
    done = guest.run(*STREAM, stdin=lines(*questions))
    assert done.code == 1
    assert [(line["id"], line.get("error", {}).get("kind")) for line in done.lines] == [
        (1, "path_escape"),
        (2, "unknown_tool"),
        (3, None),
    ]


BAD: Final = [
    b"not json",
    b"[]",
    b"7",
    b'{"tool": "read_file", "arguments": {}}',
    b'{"id": 1, "tool": "read_file", "arguments": {}',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"id": ' + b"[" * 100_000,
]


NAMED: Final = [
    b'{"id": 1}',
    b'{"id": 1, "tool": 7, "arguments": {}}',
    b'{"id": 1, "tool": "read_file", "arguments": {}, "sudo": true}',
    b'{"id": 1, "tool": "read_file", "arguments": "\xff"}',
]
"""Bad too, but it can be seen which question it was."""


def test_a_line_that_is_no_call_is_answered_and_the_rest_goes_on(one_room: Strongroom) -> None:
    rows = BAD + NAMED
    done = one_room.run(*STREAM, stdin=b"".join(bad + b"\n" + lines(READ).encode() for bad in rows))
    assert (done.code, done.err, len(done.lines)) == (1, "", 2 * len(rows))
    for row, bad in enumerate(rows):
        first, second = done.lines[2 * row : 2 * row + 2]
        assert (first["ok"], first["error"]["kind"]) == (False, "invalid_arguments"), bad[:40]
        assert first["id"] == (1 if bad in NAMED else None), bad[:40]
        assert second == {"id": 1, "ok": True, "content": "hello\n"}, bad[:40]


def test_arguments_of_any_json_are_the_tools_to_judge(guest: Guest, root: Path) -> None:
    done = guest.run(*STREAM, stdin=lines({**READ, "arguments": [1]}, READ))
    assert [line["ok"] for line in done.lines] == [False, True]


def test_blank_lines_are_no_calls_and_the_last_one_needs_no_end(guest: Guest, root: Path) -> None:
    done = guest.run(*STREAM, stdin="\n  \r\n" + lines(READ) + "\n\t\n" + lines({**READ, "id": 2}).rstrip())
    assert [line["id"] for line in done.lines] == [1, 2]
    done = guest.run(*STREAM)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_very_long_line_is_skipped_and_the_next_is_answered(guest: Guest, root: Path) -> None:
    done = guest.run(*STREAM, stdin=b"x" * (65 * 2**20) + b"\n" + lines(READ).encode())
    first, second = done.lines
    assert first["error"]["message"] == "A line of more than 67108864 bytes; it was skipped."
    assert second["ok"]


def test_a_long_line_within_the_limit_is_a_call(guest: Guest, root: Path) -> None:
    given = {"id": 1, "tool": "write_file", "arguments": {"path": "x", "content": "y" * 2**20}}
    done = guest.run(*STREAM, stdin=lines(given, {**given, "arguments": {"path": "x", "content": "y" * 2**24}}))
    assert [line.get("error", {}).get("kind") for line in done.lines] == [None, "too_large"]
    assert (root / "x").stat().st_size == 2**20


def answer(process: "subprocess.Popen[bytes]", given: str) -> Any:
    """Write to a stream of calls; return its next answer."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(given.encode())
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def test_each_line_is_answered_while_the_next_or_its_other_half_is_still_to_come(guest: Guest, root: Path) -> None:
    with guest.start(*STREAM) as process:
        for number in range(3):
            assert answer(process, lines({**READ, "id": number}))["id"] == number
        assert answer(process, lines(READ) + lines(READ)[:20])["ok"]
        done = finished(process, lines(READ)[20:].encode())
    assert (done.code, [line["ok"] for line in done.lines]) == (0, [True])


def test_a_reader_that_goes_away_ends_it_in_silence(strongroom: Strongroom, root: Path) -> None:
    with strongroom.start(*STREAM) as process:
        answer(process, lines(READ))
        assert process.stdin
        assert process.stdout
        assert process.stderr
        family = Family(children(process.pid))
        process.stdout.close()
        process.stdin.write(lines(READ, READ).encode())
        process.stdin.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == b""
    assert family.is_gone()


def test_standard_input_that_is_closed_is_wrong_usage(strongroom: Strongroom, root: Path) -> None:
    done = strongroom.run(*STREAM, wrapper=["sh", "-c", 'exec "$@" <&-', "sh"])
    assert (done.code, done.err) == (2, "error: Standard input or output is closed.\n")


# interrupted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits_for_a_line(strongroom: Strongroom, root: Path, number: signal.Signals) -> None:
    with strongroom.start(*STREAM) as process:
        answer(process, lines(READ))
        family = Family(children(process.pid))
        process.send_signal(number)
        assert process.wait(30) == 130  # its input is still open
        assert process.stderr
        assert process.stderr.read() == b"\ninterrupted\n"
    assert family.is_gone()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_call(strongroom: Strongroom, root: Path, number: signal.Signals) -> None:
    arguments = ("call", "write_file", '{"path": "x", "content": ""}', "--root", "root")
    with strongroom.start(*arguments, program=("tests.supervisor.dying", "hang", "2")) as process:
        assert process.stderr
        assert process.stderr.readline() == b"hung\n"
        family = Family(children(process.pid))
        process.send_signal(number)
        done = finished(process)
    assert (done.code, done.out, done.err) == (130, "", "\ninterrupted\n")
    assert family.is_gone()
    assert [fact.kind for fact in strongroom.facts if isinstance(fact, CallEnded)] == ["cancelled"]
