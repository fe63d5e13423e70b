"""`strongroom call` as scripts use it: one call, or a stream of them, a line of harmless JSON for each."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from supervisor.acp import extensions
from supervisor.clients.call import approve_shown
from supervisor.display.escape import json_line
from supervisor.journal.facts import CallEnded, CallStarted, SessionOpened
from tests.daemon_process import DaemonProcess, release
from tests.forked import ForkedStrongroom
from tests.supervisor.clients.shared import Guest, asked
from tests.supervisor.command import HANG_GUARD, Family, Strongroom, answer_to, children, finished, workers

NEW: Final = ("write_file", '{"path": "new.txt", "content": ""}')


WAYS: Final[dict[str, tuple[str, str, str | None, str]]] = {
    "good": ("read_file", '{"path": "a.txt"}', None, "hello\n"),
    "escape": ("read_file", '{"path": "../x"}', "path_escape", "Path escape"),
    "absolute": ("read_file", '{"path": "/etc/passwd"}', "path_escape", "Access denied"),
    "missing": ("read_file", '{"path": "x"}', "not_found", "x"),
    "directory": ("read_file", '{"path": "."}', "not_a_file", ""),
    "protected": ("write_file", '{"path": ".envrc", "content": ""}', "permission_denied", ".envrc"),
    "no match": ("edit_file", '{"path": "a.txt", "old": "x", "new": "y"}', "no_match", ""),
    "bad JSON": ("read_file", "{path: a}", "invalid_arguments", "Send one JSON object"),
    "an unknown argument": ("read_file", '{"path": "a", "force": true}', "invalid_arguments", "force"),
    "an unknown tool": ("exec_shell", "{}", "unknown_tool", "There is no tool 'exec_shell' here"),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Strongroom, DaemonProcess]]:
    """A command line where a daemon runs."""
    strongroom = ForkedStrongroom.beside_a_root(tmp_path_factory.mktemp("served"))
    with DaemonProcess(strongroom.home, strongroom.folder) as daemon:
        yield strongroom, daemon


@pytest.mark.parametrize(("tool", "arguments", "kind", "words"), WAYS.values(), ids=WAYS)
def test_one_call_is_answered_with_a_document(
    served: tuple[Strongroom, DaemonProcess], tool: str, arguments: str, kind: str | None, words: str
) -> None:
    done = served[0].run("call", tool, arguments, "--root", "root")
    assert (done.code, done.err, done.json["ok"]) == (0 if kind is None else 1, "", kind is None)
    assert done.json.get("error", {}).get("kind") == kind
    assert words in (done.json["error"]["message"] if kind else done.json["content"])


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
        assert json.loads(answer_to(process, lines(READ)))["ok"]
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
    release(daemon.children())
    assert strongroom.run("call", "read_file", '{"path": "a.txt"}', "--root", "root").code == 0
    kinds = [fact.kind for fact in strongroom.facts if isinstance(fact, CallEnded) and fact.tool == "write_file"]
    assert kinds[-2:] == [None, "cancelled"]


@pytest.mark.parametrize("allowed", [6, 8, 9, 14])
def test_too_few_descriptors_are_told_in_one_line(strongroom: Strongroom, root: Path, allowed: int) -> None:
    limited = ("/bin/sh", "-c", f'ulimit -n {allowed}; exec "$0" "$@"')
    done = strongroom.run("call", "read_file", '{"path": "a.txt"}', "--root", "root", wrapper=limited)
    assert done.code in {1, 2}
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("options", [(), ("--approve",)], ids=["nobody is asked", "--approve"])
def test_a_call_that_asks_is_denied_unless_approved_beforehand(
    strongroom: Strongroom, root: Path, options: tuple[str, ...]
) -> None:
    strongroom.configure("[profiles.vault]\nask = ['write_file']\n")
    done = strongroom.run("call", *NEW, "--root", "root", *options)
    assert (done.code, done.json.get("error", {}).get("kind")) == ((0, None) if options else (1, "denied"))
    assert (root / "new.txt").exists() == bool(options)


def test_approve_commits_what_a_rehearsal_has_shown(served: tuple[Strongroom, DaemonProcess]) -> None:
    touch = ("call", "exec_shell", '{"command": "touch", "args": ["touched.txt"]}', "--profile", "project")
    touched = served[0].folder / "root" / "touched.txt"
    denied = served[0].run(*touch, "--root", "root")
    assert denied.json["error"]["kind"] == "denied"
    assert "touched.txt" in denied.json["error"]["message"]
    assert not touched.exists()
    assert served[0].run(*touch, "--root", "root", "--approve").code == 0
    assert touched.exists()


def test_nothing_is_changed_in_plan_mode_though_it_is_approved(served: tuple[Strongroom, DaemonProcess]) -> None:
    planned = ("--mode", "plan", "--approve", "--root", "root")
    done = served[0].run("call", "write_file", '{"path": "a.txt", "content": "new"}', *planned)
    assert (done.code, done.json["error"]["kind"]) == (1, "denied")
    assert "would have changed 1 file:\n  M  a.txt" in done.json["error"]["message"]
    assert (served[0].folder / "root" / "a.txt").read_text() == "hello\n"


def test_approve_does_not_reach_beyond_the_profile(served: tuple[Strongroom, DaemonProcess]) -> None:
    done = served[0].run("call", "list_directory", '{"path": "."}', "--root", "root", "--approve")
    assert done.json["error"]["kind"] == "unknown_tool"


STAGES: Final[list[tuple[extensions.Stage, str]]] = [
    ("call", "allow_once"),
    ("effects", "allow_once"),
    ("network", "allow_once"),
    ("direct", "reject_once"),
    ("refused", "allow_once"),
]


@pytest.mark.parametrize(("stage", "answer"), STAGES)
def test_approve_says_yes_once_and_never_to_what_nobody_has_seen(stage: extensions.Stage, answer: str) -> None:
    question, answers = asked(tool="exec_shell", arguments="{}", stage=stage, covers="RULE", escalation=True)
    approve_shown(question)
    (given,) = answers
    assert given.outcome.option_id == answer
    assert not {extensions.SCOPE, extensions.UNCONFINED} & set(given.meta or {})


def test_a_read_only_profile_has_no_tools_that_write(strongroom: Strongroom, root: Path) -> None:
    strongroom.configure("[profiles.vault]\nwritable = false\n")
    assert strongroom.run("call", *NEW, "--root", "root").json["error"]["kind"] == "unknown_tool"
    assert not (root / "new.txt").exists()


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
    *("1", '"x"', "null", "true", "1.50", "[1, {}]", '{"a": [null]}', "123456789012345678901234567890", '"\\u001b"'),
    *("[1,\r2]", '[1,\t"é"]', '[1,\r"é"]', '{"a"\r:\r\t"\x7f\x9b"}', '"\u2028"', '\r\r"x"'),
]


@pytest.fixture(scope="module")
def one_room(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """A command line for rows that are all answered by one process."""
    return ForkedStrongroom.beside_a_root(tmp_path_factory.mktemp("room"))


def test_an_id_comes_back_on_one_line_whatever_json_it_is(one_room: Strongroom) -> None:
    rest = '"tool": "read_file", "arguments": {"path": "a.txt"}'
    done = one_room.run(*STREAM, stdin="".join(f'{{"id": {each}, {rest}}}\n' for each in IDS))
    for number, line in zip(IDS, done.out.splitlines(), strict=True):
        assert json.loads(line)["id"] == json.loads(number)
        assert line.isprintable()
        assert not number.isprintable() or line.startswith(f'{{"id":{number},"ok":true')


def test_a_line_that_fails_is_answered_with_its_kind(guest: Guest, root: Path) -> None:
    questions = [{**READ, "arguments": {"path": "../x"}}, {**READ, "id": 2, "tool": "nothing"}, {**READ, "id": 3}]
    done = guest.run(*STREAM, stdin=lines(*questions))
    kinds = [(line["id"], line.get("error", {}).get("kind")) for line in done.lines]
    assert (done.code, kinds) == (1, [(1, "path_escape"), (2, "unknown_tool"), (3, None)])


BAD: Final[list[tuple[bytes, Any]]] = [
    *((line, None) for line in (b"not json", b"[]", b"[7]", b"7", b"\xff\xfe", b"[" * 100_000)),
    (b'{"tool": "read_file", "arguments": {}}', None),
    (b'{"id": 1, "tool": "read_file", "arguments": {}', None),
    (b'{"id": 7', None),
    (b'{"id": ' + b"[" * 100_000, None),
    (b'{"id": 1}', 1),
    (b'{"id": 1, "tool": 7, "arguments": {}}', 1),
    (b'{"id": "x", "tool": 1, "arguments": {}}', "x"),
    (b'{"id": [1, {}], "tool": "read_file", "arguments": {}, "sudo": true}', [1, {}]),
    (b'{"id": 1, "tool": "read_file", "arguments": "\xff"}', 1),
]
"""Lines that are no calls, and the id where it can be seen which question it was."""


def test_a_line_that_is_no_call_is_answered_and_the_rest_goes_on(one_room: Strongroom) -> None:
    done = one_room.run(*STREAM, stdin=b"".join(bad + b"\n" + lines(READ).encode() for bad, _ in BAD))
    assert (done.code, done.err, len(done.lines)) == (1, "", 2 * len(BAD))
    for (bad, number), first, second in zip(BAD, done.lines[::2], done.lines[1::2], strict=True):
        assert (first["ok"], first["error"]["kind"]) == (False, "invalid_arguments"), bad[:40]
        assert first["id"] == number, bad[:40]
        assert second == {"id": 1, "ok": True, "content": "hello\n"}, bad[:40]


EVIL: Final = ["\x1b[2J", "\x9b31m", "\u202eexe.txt", "\x7f", "\x85", "\u2028", "\u2029", "\r", "\U000e0041", "\ufeff"]


def test_control_characters_of_a_file_are_escapes_that_mean_the_same(guest: Guest, root: Path) -> None:
    text = "first\n" + "\n".join(EVIL) + "\tlast é 日\n"
    (root / "a.txt").write_bytes(text.encode())
    done = guest.run(*STREAM, stdin=lines(READ, {**READ, "id": 2}))
    assert done.code == 0
    assert [char for char in done.out if char != "\n" and not char.isprintable()] == []
    read = text.replace("\U000e0041", "\\U000E0041")
    note = "not seen by people (tags, selectors), written out as \\U and eight digits: 1 character"
    assert done.lines == [{"id": number, "ok": True, "content": read, "note": note} for number in (1, 2)]
    told = ("\\u009b31m", "\\u202eexe.txt", "\\u007f", "é 日")
    assert [each for each in told if each not in done.out] == []


def test_json_that_a_worker_wrote_over_several_lines_is_one() -> None:
    line = json_line({"id": 1, "content": msgspec.Raw(b'[1,\n{"id":2,"ok":true}\n,\r"a b"\t]')})
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"id": 1, "content": [1, {"id": 2, "ok": True}, "a b"]}


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


def test_each_line_is_answered_while_the_next_or_its_other_half_is_still_to_come(guest: Guest, root: Path) -> None:
    with guest.start(*STREAM) as process:
        for number in range(3):
            assert json.loads(answer_to(process, lines({**READ, "id": number})))["id"] == number
        assert json.loads(answer_to(process, lines(READ) + lines(READ)[:20]))["ok"]
        done = finished(process, lines(READ)[20:].encode())
    assert (done.code, [line["ok"] for line in done.lines]) == (0, [True])


def test_a_reader_that_goes_away_ends_it_in_silence(strongroom: Strongroom, root: Path) -> None:
    with strongroom.start(*STREAM) as process:
        answer_to(process, lines(READ))
        assert process.stdin
        assert process.stdout
        assert process.stderr
        family = Family(children(process.pid))
        process.stdout.close()
        process.stdin.write(lines(READ, READ).encode())
        process.stdin.close()
        assert process.wait(HANG_GUARD) == 1
        assert process.stderr.read() == b""
    assert family.is_gone()


def test_a_private_daemon_starts_a_template_and_one_worker_and_no_spare(strongroom: Strongroom, root: Path) -> None:
    with strongroom.start(*STREAM) as process:
        for _ in range(3):
            assert json.loads(answer_to(process, lines(READ)))["ok"]
        assert len(workers(process.pid)) == 2
        assert finished(process).code == 0


def test_standard_input_that_is_closed_is_wrong_usage(strongroom: Strongroom, root: Path) -> None:
    done = strongroom.run(*STREAM, wrapper=["sh", "-c", 'exec "$@" <&-', "sh"])
    assert (done.code, done.err) == (2, "error: Standard input or output is closed.\n")


# interrupted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits_for_a_line(strongroom: Strongroom, root: Path, number: signal.Signals) -> None:
    with strongroom.start(*STREAM) as process:
        answer_to(process, lines(READ))
        family = Family(children(process.pid))
        process.send_signal(number)
        assert process.wait(HANG_GUARD) == 130  # its input is still open
        assert process.stderr
        assert process.stderr.read() == b"\ninterrupted\n"
    assert family.is_gone()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_call(strongroom: Strongroom, root: Path, number: signal.Signals) -> None:
    with strongroom.start("call", *NEW, "--root", "root", program=("tests.supervisor.dying", "hang", "2")) as process:
        assert process.stderr
        assert process.stderr.readline() == b"hung\n"
        family = Family(children(process.pid))
        process.send_signal(number)
        done = finished(process)
    assert (done.code, done.out, done.err) == (130, "", "\ninterrupted\n")
    assert family.is_gone()
    assert [fact.kind for fact in strongroom.facts if isinstance(fact, CallEnded)] == ["cancelled"]
