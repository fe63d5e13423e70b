"""The console without a terminal: lines in, lines out."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions, schema
from tests.forked import ForkedStrongroom
from tests.supervisor.clients.console.fake_daemon import GO, SESSION, FakeDaemon, called, ended, heard, holding, said
from tests.supervisor.command import CODE, HANG_GUARD, Done, Strongroom, finished

Run = Callable[..., Future[Done]]


@pytest.fixture
def run(home: Path, root: Path, daemon: FakeDaemon) -> Iterator[Run]:
    """Start a console on pipes; its input is given at once, and the test plays the daemon until its end."""
    with ThreadPoolExecutor(1) as pool:

        def begun(given: str, *options: str, **variables: str) -> Future[Done]:
            strongroom = ForkedStrongroom(home, root.parent, **variables)
            return pool.submit(strongroom.run, "console", *options, stdin=given)

        yield begun


def test_answers_go_to_stdout_and_the_rest_to_stderr(run: Run, daemon: FakeDaemon) -> None:
    console = run("first\n\n/tools\nsecond")
    assert daemon.prompt() == "first"
    daemon.tell(called(1, "read_file", '{"path": "a"}'), ended(1, "read_file", "no", "not_found"))
    daemon.reply("**One**\x1b[2J")
    assert daemon.prompt() == "second"
    daemon.reply("Two.", "turn-2-step-0")
    done = console.result(HANG_GUARD)
    assert done.out == "**One**\\x1b[2J\nread_file\nrun_cmd\nTwo.\n"
    assert "· read_file a  not_found" in done.err
    assert "\x1b" not in done.out + done.err
    assert done.code == 0


@pytest.mark.parametrize(("status", "told"), [("error", "error: timeout: No answer."), ("suspended", "")])
def test_the_last_turn_s_failure_is_the_exit_code(run: Run, daemon: FakeDaemon, status: str, told: str) -> None:
    console = run("go\n")
    daemon.prompt()
    daemon.end(status, kind="timeout", message="No answer.")
    done = console.result(HANG_GUARD)
    assert (done.code, done.out) == (1, "")
    assert told in done.err


def test_a_question_that_nobody_can_be_asked_is_declined(run: Run, daemon: FakeDaemon) -> None:
    console = run("go\n")
    daemon.prompt()
    daemon.ask("run_cmd", '{"command": "ls"}')
    answer = daemon.answered()
    assert answer["option"] == "reject_once"
    assert "Nobody is there" in answer["_strongroom/remark"]
    daemon.end()
    assert console.result(HANG_GUARD).code == 0


def test_a_daemon_that_ends_is_found_again(run: Run, daemon: FakeDaemon) -> None:
    console = run("go\n")
    daemon.prompt()
    daemon.say("One ")
    daemon.drop()
    assert daemon.prompt() == "go"
    daemon.reply("One and two.")
    done = console.result(HANG_GUARD)
    assert done.out == "One and two.\n"
    assert "reconnecting" in done.err


def test_a_model_s_options_are_listed_and_chosen(run: Run, daemon: FakeDaemon) -> None:
    done = run("/effort\n/effort high\n/temperature\n").result(HANG_GUARD)
    assert done.out == "*  default\n   high\n"
    assert "The effort is high now." in done.err
    assert "This model has no temperature." in done.err


def test_quit_ends_it(run: Run) -> None:
    console = run("/quit\nnever\n")
    assert console.result(HANG_GUARD).code == 0


def test_a_reader_that_leaves_ends_it_quietly(home: Path, root: Path, daemon: FakeDaemon) -> None:
    reader, writer = os.pipe()
    process = ForkedStrongroom(home, root.parent).begin(["console"], ["supervisor"], (), subprocess.PIPE, writer)
    os.close(writer)
    os.close(reader)
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    daemon.prompt()
    daemon.say("Nobody reads this.")
    try:
        _, errors = process.communicate(timeout=HANG_GUARD)
    finally:
        process.kill()
    assert b"Traceback" not in errors


IMPORTS: Final = """
import sys
from supervisor.clients.console.options import ConsoleOptions
from supervisor.clients.console.start_console import run_console
from supervisor.config.settings import load
run_console(load(), ConsoleOptions())
print(*sys.modules)
"""


def test_it_imports_nothing_for_terminals(home: Path, root: Path, daemon: FakeDaemon) -> None:
    environment = {**Strongroom(home, root.parent).environment, "PYTHONPATH": str(CODE)}
    program = [sys.executable, "-c", IMPORTS]
    out = subprocess.check_output(
        program, stdin=subprocess.DEVNULL, cwd=root.parent, env=environment, timeout=HANG_GUARD
    )
    loaded = {name.split(".")[0] for name in out.decode().split()}
    assert "supervisor" in loaded
    assert not loaded & {"prompt_toolkit", "rich", "trio", "anthropic", "sqlite3", "click"}


def test_a_session_is_found_by_the_end_of_its_id(run: Run, daemon: FakeDaemon, root: Path) -> None:
    daemon.sessions = [schema.SessionInfo(session_id=SESSION, cwd=str(root), title="first")]
    daemon.history = [heard("first"), said("Hello.")]
    console = run("more\n", "--session", SESSION[-6:])
    daemon.continued()
    assert daemon.prompt() == "more"
    daemon.reply("More.", "turn-2-step-0")
    assert console.result(HANG_GUARD).out == "Hello.\nMore.\n"


def test_another_session_is_taken_up_on_another_connection(run: Run, daemon: FakeDaemon) -> None:
    daemon.history = [heard("first"), said("Hello.")]
    console = run(f"/resume {SESSION}\n/clear\n")
    daemon.continued()
    assert console.result(HANG_GUARD).out == "Hello.\n"
    assert daemon.seen.count("initialize") == 3


def test_words_are_found_in_all_sessions(run: Run, daemon: FakeDaemon) -> None:
    console = run("/find\n/find seeds\n/find nothing\n")
    found = [holding("b", "seeds there\x1b", (0, 5)), holding("a", "of seeds", (3, 8))]
    for each in (found, []):
        daemon.answer(daemon.next("_strongroom/search"), extensions.SearchResult(found=each))
    done = console.result(HANG_GUARD)
    assert done.out == (
        "a  1970-01-01 00:00:01Z  turn 3  tool: read_file\n    of \u00abseeds\u00bb\n"
        "b  1970-01-01 00:00:01Z  turn 3  tool: read_file\n    \u00abseeds\u00bb there\\x1b\n"
    )
    for told in ("/find WORDS looks in all sessions", "/resume ID takes up one", "Nothing holds these words."):
        assert told in done.err


def test_closed_streams_are_no_input_and_a_failure(home: Path, root: Path, daemon: FakeDaemon) -> None:
    for closed, code in (("<&-", 0), (">&-", 1)):
        done = Strongroom(home, root.parent).run("console", wrapper=["sh", "-c", f'"$@" {closed}', "sh"])
        assert done.code == code, done.err


# --- /undo ------------------------------------------------------------------------------------------------------------

TYPED: Final = "go\n/undo\n/undo 1 force\n/undo --turn\n/undo session\n/undo call-9\n/undo 2\n/undo a b\n"
ASKED: Final = [
    {"sessionId": SESSION},
    {"sessionId": SESSION, "calls": ["call-1"], "force": True},
    {"sessionId": SESSION, "scope": "turn"},
    {"sessionId": SESSION, "scope": "session"},
    {"sessionId": SESSION, "calls": ["call-9"]},
]
WELL: Final = extensions.Undone(
    call="call-1",
    tool="write_file",
    title="write_file a\x1b[2J",
    ok=True,
    undo="call_2",
    message="Restored 1 file.",
    changes=(extensions.Restored(path="b\x1b[2J", what="added"),),
)
BADLY: Final = extensions.Undone(
    call="call-0", tool="t", title="t", ok=False, kind="conflict", message="It has changed since."
)


def test_undo_asks_for_what_was_typed_and_shows_what_became_of_it(run: Run, daemon: FakeDaemon) -> None:
    console = run(TYPED)
    daemon.prompt()
    daemon.tell(called(1, "write_file", '{"path": "a"}'), ended(1, "write_file", "ok"))
    daemon.end()
    for number, params in enumerate(ASKED):
        asked = daemon.next(extensions.UNDO_METHOD)
        assert asked.params == params
        steps = (WELL, BADLY) if number == 0 else ()
        daemon.answer(asked, extensions.UndoResult(session_id=SESSION, steps=steps))
    done = console.result(HANG_GUARD)
    assert done.out.splitlines() == [
        r"undone: write_file a\x1b[2J  (call-1, by call_2; `/undo call_2` brings it back)",
        r"    brought back b\x1b[2J",
        "    Restored 1 file.",
        "not undone: t  (call-0)",
        "    conflict: It has changed since.",
    ]
    assert done.err.count("Nothing to undo: this session has changed nothing that still stands.") == 4
    assert done.err.count("/undo takes [N|turn|session|CALL] [force]") == 2


def test_rules_are_shown_and_revoked_as_it_was_typed(run: Run, daemon: FakeDaemon) -> None:
    console = run("/rules\n/rules revoke 2\n/rules 2\n/rules revoke\n")
    for revoke in ("", "2"):
        asked = daemon.next(extensions.RULES_METHOD)
        assert asked.params == {"sessionId": SESSION} | ({"revoke": revoke} if revoke else {})
        daemon.answer(asked, extensions.RulesResult(session_id=SESSION, lines=("one \x1b[2J", "two")))
    done = console.result(HANG_GUARD)
    assert done.out == "one \\x1b[2J\ntwo\n" * 2
    assert done.err.count("/rules takes nothing, or revoke or keep, and a number.") == 2


@pytest.mark.parametrize("options", [[], ["--session", SESSION]], ids=["a new turn", "one that was under way"])
def test_commands_that_come_while_a_turn_waits_count_at_once(
    home: Path, root: Path, daemon: FakeDaemon, options: list[str]
) -> None:
    console = ForkedStrongroom(home, root.parent).start("console", *options)
    assert console.stdin is not None
    assert console.stderr is not None
    console.stdin.write(b"/tools\n" if options else b"go\n/tools\n")
    console.stdin.flush()
    if options:
        daemon.continued(wait=True)
    else:
        daemon.prompt()
    daemon.tell(GO, said("("))
    daemon.suspend()
    while b"(for after this turn: /tools)" not in console.stderr.readline():
        continue
    console.stdin.write(b"/go\n")
    console.stdin.flush()
    assert daemon.next("session/prompt").params["prompt"][0]["text"] == "/go"
    daemon.state("Thinking")
    daemon.reply("at last)")
    done = finished(console)
    assert (done.code, done.out) == (0, "(at last)\nread_file\nrun_cmd\n")
