"""The console without a terminal: lines in, lines out."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from supervisor.acp import schema
from tests.supervisor.clients.console.fake_daemon import SESSION, FakeDaemon, called, ended, heard, said
from tests.supervisor.clients.console.terminals import PATIENCE, command, environment, piped

Done = subprocess.CompletedProcess[str]


class Run:
    """A console on pipes whose input is given at once, while the test plays the daemon."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home, self._folder = home, folder
        self._pool = ThreadPoolExecutor(1)

    def start(self, given: str, variables: dict[str, str] | None = None, **options: Any) -> None:
        self._done = self._pool.submit(piped, self._home, self._folder, given, variables or {}, **options)

    def ended(self) -> Done:
        return self._done.result(PATIENCE)

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def run(home: Path, root: Path, daemon: FakeDaemon) -> Iterator[Run]:
    console = Run(home, root.parent)
    yield console
    console.close()


def test_answers_go_to_stdout_and_the_rest_to_stderr(run: Run, daemon: FakeDaemon) -> None:
    run.start("first\n\n/tools\nsecond")
    assert daemon.prompt() == "first"
    daemon.tell(called(1, "read_file", '{"path": "a"}'), ended(1, "read_file", "no", "not_found"))
    daemon.say("**One**\x1b[2J")
    daemon.end()
    assert daemon.prompt() == "second"
    daemon.say("Two.", "turn-2-step-0")
    daemon.end()
    done = run.ended()
    assert done.stdout == "**One**\\x1b[2J\nread_file\nrun_cmd\nTwo.\n"
    assert "· read_file a  not_found" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.returncode == 0


def test_the_last_turn_s_failure_is_the_exit_code(run: Run, daemon: FakeDaemon) -> None:
    run.start("go\n")
    daemon.prompt()
    daemon.end("error", kind="timeout", message="No answer.")
    done = run.ended()
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: timeout: No answer." in done.stderr


def test_what_nobody_can_be_asked_is_declined(run: Run, daemon: FakeDaemon) -> None:
    run.start("go\n")
    daemon.prompt()
    daemon.ask("run_cmd", '{"command": "ls"}')
    answer = daemon.answered()
    assert answer["option"] == "reject_once"
    assert "Nobody is there" in answer["_strongroom/remark"]
    daemon.end()
    assert run.ended().returncode == 0


def test_a_daemon_that_ends_is_found_again(run: Run, daemon: FakeDaemon) -> None:
    run.start("go\n")
    daemon.prompt()
    daemon.say("One ")
    daemon.drop()
    assert daemon.prompt() == "go"
    daemon.say("One and two.")
    daemon.end()
    done = run.ended()
    assert done.stdout == "One and two.\n"
    assert "reconnecting" in done.stderr


def test_a_key_that_the_daemon_does_not_have_is_explained(run: Run, daemon: FakeDaemon) -> None:
    daemon.facts = msgspec.structs.replace(daemon.facts, notices=("It needs a key: set ANTHROPIC_API_KEY.",))
    run.start("", {"ANTHROPIC_API_KEY": "sk-ant-example"})
    assert "`strongroom daemon --stop` ends it." in run.ended().stderr


def test_quit_ends_it(run: Run) -> None:
    run.start("/quit\nnever\n")
    assert run.ended().returncode == 0


def test_a_reader_that_leaves_ends_it_quietly(home: Path, root: Path, daemon: FakeDaemon) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE, cwd=root.parent, env=environment(home)
    )
    os.close(writer)
    os.close(reader)
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    daemon.prompt()
    daemon.say("Nobody reads this.")
    try:
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert b"Traceback" not in errors


def test_it_imports_nothing_for_terminals(home: Path, root: Path, daemon: FakeDaemon) -> None:
    program = command()[2].replace("sys.exit(run", "code = (run") + "\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, "{}"],
        input="",
        capture_output=True,
        text=True,
        cwd=root.parent,
        env=environment(home),
        timeout=PATIENCE,
        check=True,
    )
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert "supervisor" in loaded
    assert not loaded & {"prompt_toolkit", "rich", "trio", "anthropic", "sqlite3", "click"}


def test_a_conversation_is_exported(run: Run, daemon: FakeDaemon, root: Path) -> None:
    run.start("what is\n/export talk.md\n/export talk.md\n/show\n")
    daemon.prompt()
    daemon.tell(called(1, "read_file", '{"path": "a"}'), ended(1, "read_file", "```\nfenced\n"))
    daemon.say("It is **so**.")
    daemon.end()
    done = run.ended()
    text = (root.parent / "talk.md").read_text()
    assert text.startswith("# what is\n")
    assert "> what is\n" in text
    assert "\n- `read_file` (completed)\n" in text
    assert "\n  ````\n  ```\n  fenced\n  ````\n" in text
    assert text.endswith("\nIt is **so**.\n")
    assert "talk.md exists already, and stays as it is" in done.stderr
    assert "#1 read_file  completed  0.25 s" in done.stdout


def test_a_session_is_found_by_the_end_of_its_id(run: Run, daemon: FakeDaemon, root: Path) -> None:
    daemon.sessions = [schema.SessionInfo(session_id=SESSION, cwd=str(root), title="first")]
    daemon.history = [heard("first"), said("Hello.")]
    run.start("more\n", session=SESSION[-6:])
    daemon.continued()
    assert daemon.prompt() == "more"
    daemon.say("More.", "turn-2-step-0")
    daemon.end()
    assert run.ended().stdout == "Hello.\nMore.\n"


def test_another_session_is_taken_up_on_another_connection(run: Run, daemon: FakeDaemon) -> None:
    daemon.history = [heard("first"), said("Hello.")]
    run.start(f"/resume {SESSION}\n/clear\n")
    daemon.continued()
    assert run.ended().stdout == "Hello.\n"
    assert daemon.seen.count("initialize") == 3


def test_closed_streams_are_no_input_and_a_failure(home: Path, root: Path, daemon: FakeDaemon) -> None:
    for closed, code in (("<&-", 0), (">&-", 1)):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {closed}', "sh", *command()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=root.parent,
            env=environment(home),
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stderr
