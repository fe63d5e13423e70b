"""The command line: help for every command, a sentence for every mistake, and never a traceback."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.shell_completion import ShellComplete

from supervisor.cli.main import _sentence, main
from supervisor.journal.facts import SessionOpened
from supervisor.journal.journal import open_journal
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, Response, error, reply
from tests.supervisor.command import Strongroom, workers
from workers.wire.messages import Context

COMMANDS: Final = [
    *("console", "batch", "call", "acp", "daemon"),
    *("status", "tools", "doctor"),
    *("sessions", "history", "why", "rules", "verify"),
    *("init", "completion"),
]
OK: Final = "read_file", '{"path": "a.txt"}'


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(strongroom: Strongroom, command: str) -> None:
    done = strongroom.run(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"strongroom {command}" in done.out.split("Options:")[0].partition("\n")[2]
    if command in ("batch", "daemon"):
        said = " ".join(done.out.partition("--faults PLAN")[2].split())
        assert "scripts/faults.toml is a sample, and lists all faults, moments and keys." in said


def test_version_and_help_make_nothing(strongroom: Strongroom) -> None:
    assert strongroom.run("--version").out.split()[1:]
    out = strongroom.run("-h").out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    assert not strongroom.home.exists()


WRONG: Final[list[tuple[str, tuple[str, ...]]]] = [
    ("unknown command", ("fly",)),
    ("unknown option", ("tools", "--fly")),
    ("nothing to call", ("call",)),
    ("a tool and a stream", ("call", "read_file", "--stdin")),
    ("too many arguments", ("call", "read_file", "{}", "x")),
    ("a root that is missing", ("call", *OK, "--root", "nowhere")),
    ("a root that is a file", ("call", *OK, "--root", "root/a.txt")),
    ("a root that holds the home", ("call", *OK, "--root", ".")),
    ("an empty profile name", ("call", *OK, "--root", "root", "--profile", "no")),
    ("no output", ("batch", "in")),
    ("no input", ("batch", "--output", "out")),
    ("an input that is missing", ("batch", "in", "--output", "out", "--root", "root", "--model", "offline")),
    ("a concurrency that is no number", ("batch", "in", "--output", "out", "--concurrency", "many")),
    ("no session", ("history",)),
    ("a format nobody has", ("history", "x", "--format", "yaml")),
    ("a shell nobody has", ("completion", "dos")),
    ("two sessions", ("console", "--session", "x", "--continue")),
    ("two ways to look", ("status", "--json", "--watch")),
    ("a daemon that starts and stops", ("daemon", "--stop", "--socket", "x")),
    ("a call that nobody made", ("why", "call_1")),
]


@pytest.mark.parametrize("arguments", [each[1] for each in WRONG], ids=[each[0] for each in WRONG])
def test_wrong_usage_is_a_sentence_and_exit_code_2(
    strongroom: Strongroom, root: Path, arguments: tuple[str, ...]
) -> None:
    done = strongroom.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert "Traceback" not in done.err


CONFIGURATIONS: Final = [
    ("a word nobody knows", "modell = 'x'", "did you mean 'model'?"),
    ("no TOML", "=", "is not valid TOML"),
    ("a profile that lacks", "[profiles.x]", "needs both `root` and `tools`"),
]


@pytest.mark.parametrize(
    ("text", "words"), [each[1:] for each in CONFIGURATIONS], ids=[each[0] for each in CONFIGURATIONS]
)
@pytest.mark.parametrize("command", [("tools",), ("call", *OK, "--root", "root")], ids=["tools", "call"])
def test_a_wrong_configuration_is_a_sentence_and_exit_code_2(
    strongroom: Strongroom, root: Path, command: tuple[str, ...], text: str, words: str
) -> None:
    strongroom.home.mkdir(mode=0o700)
    (strongroom.home / "config.toml").write_text(text)
    done = strongroom.run(*command)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_home_that_others_can_write_is_refused(strongroom: Strongroom, root: Path) -> None:
    strongroom.home.mkdir()
    strongroom.home.chmod(0o777)
    done = strongroom.run("call", *OK, "--root", "root")
    assert (done.code, done.out) == (2, "")
    assert "insecure permissions" in done.err


def test_a_home_is_private_whatever_the_umask(strongroom: Strongroom, root: Path, umask_000: None) -> None:
    assert strongroom.run("call", *OK, "--root", "root").code == 0
    modes = {file.name: file.stat().st_mode & 0o777 for file in [strongroom.home, *strongroom.home.iterdir()]}
    assert modes == {"home": 0o700, "journal.db": 0o600, "sessions.lock": 0o600}


def a_directory(file: Path) -> None:
    file.mkdir()


def a_fifo(file: Path) -> None:
    os.mkfifo(file)


def garbage(file: Path) -> None:
    file.write_bytes(b"garbage" * 1000)


@pytest.mark.parametrize("make", [a_directory, a_fifo, garbage])
@pytest.mark.parametrize(
    "command", [("call", *OK, "--root", "root"), ("sessions",), ("verify",)], ids=lambda each: each[0]
)
def test_a_journal_that_cannot_be_used_is_a_sentence_and_exit_code_1(
    strongroom: Strongroom, root: Path, command: tuple[str, ...], make: Any
) -> None:
    strongroom.home.mkdir(mode=0o700)
    make(strongroom.home / "journal.db")
    done = strongroom.run(*command)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: The journal ")
    assert "Traceback" not in done.err


NOT_TEXT: Final = os.fsdecode(b"\xff")


@pytest.mark.parametrize(
    "arguments",
    [
        ("call", "read_file", f'{{"path": "{NOT_TEXT}"}}', "--root", "root"),
        ("call", NOT_TEXT, "{}", "--root", "root"),
        ("call", *OK, "--root", NOT_TEXT),
        ("call", *OK, "--root", "root", "--profile", NOT_TEXT),
        ("history", NOT_TEXT),
        ("batch", NOT_TEXT, "--output", "out", "--root", "root", "--model", "offline"),
        ("batch", "in", "--output", "out", "--root", "root", "--model", NOT_TEXT),
    ],
    ids=["arguments", "tool", "root", "profile", "session", "file", "model"],
)
def test_arguments_that_are_not_text_are_wrong_usage(
    strongroom: Strongroom, root: Path, arguments: tuple[str, ...]
) -> None:
    (strongroom.folder / NOT_TEXT).mkdir()
    (strongroom.folder / "in").write_text("x")
    done = strongroom.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_an_output_whose_name_is_not_text_is_an_error(strongroom: Strongroom, root: Path) -> None:
    (strongroom.folder / "in").write_text("x")
    done = strongroom.run("batch", "in", "--output", NOT_TEXT, "--root", "root", "--model", "offline")
    assert (done.code, done.out) == (1, "")
    assert "Traceback" not in done.err


def test_it_works_in_a_locale_without_unicode_and_logs_to_stderr(strongroom: Strongroom, root: Path) -> None:
    (root / "é.txt").write_text("日記")
    strongroom.environment |= {"LC_ALL": "C", "LANG": "C"}
    done = strongroom.run("-vv", "call", "read_file", '{"path": "é.txt"}', "--root", "root")
    assert (done.code, done.json["content"]) == (0, "日記")


def test_a_completion_script_names_the_program(strongroom: Strongroom) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_STRONGROOM_COMPLETE" in strongroom.run("completion", shell).out


COMPLETIONS: Final = [
    ([], "ba", "batch"),
    (["console", "--profile"], "", "project"),
    (["call", "--profile", "project"], "list", "list_directory"),
    (["call"], "list", "list_files"),
    (["batch", "--model"], "off", "offline"),
    (["history"], "2026", "2026-1"),
    (["console", "--session"], "", "2026-1"),
]


@pytest.mark.parametrize(("typed", "incomplete", "offered"), COMPLETIONS)
def test_a_shell_completes(
    home: Path, monkeypatch: pytest.MonkeyPatch, typed: list[str], incomplete: str, offered: str
) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(home))
    home.mkdir(mode=0o700)
    with open_journal(home / "journal.db") as journal:
        journal.append("2026-1", SessionOpened("vault", "", Context("/v"), (), "call", "0"))
    found = ShellComplete(main, {}, "strongroom", "_COMPLETE").get_completions(typed, incomplete)
    assert offered in [item.value for item in found]
    assert all(item.value.startswith(incomplete) for item in found)


def test_a_wrong_configuration_is_no_bother_while_one_types(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRONGROOM_HOME", str(home))
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("=")
    assert ShellComplete(main, {}, "strongroom", "_COMPLETE").get_completions(["call"], "") == []


def test_no_worker_inherits_the_environment(strongroom: Strongroom, root: Path) -> None:
    strongroom.environment["ANTHROPIC_API_KEY"] = "sk-ant-secret"
    with strongroom.start("call", "--stdin", "--root", "root") as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b'{"id": 1, "tool": "read_file", "arguments": {"path": "a.txt"}}\n')
        process.stdin.flush()
        process.stdout.readline()
        found = workers(process.pid)
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in found]
        process.stdin.close()
    assert found
    assert set(environments) == {b""}


KEY: Final = "sk-ant-api03-very-secret"
PRIVATE: Final = "a question that is nobody's business"


def test_no_log_has_the_key_or_what_was_asked(strongroom: Strongroom, root: Path) -> None:
    replies: list[Response] = [error(429, "slow down", "rate_limit_error", retry_after="0"), reply("a private answer")]
    (strongroom.folder / "in").write_text(PRIVATE)
    with MessagesServer(replies) as server:
        strongroom.environment |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        done = strongroom.run("-vvvv", "batch", "in", "--output", "out", "--root", "root", "--model", "m")
    assert done.code == 0
    assert [KEY in str(request.headers) for request in server.requests] == [True, True]
    assert [PRIVATE in str(body) for body in server.bodies] == [True, True]
    shown = (done.err + done.out).lower()
    assert [each for each in (KEY, "very-secret", PRIVATE, "a private answer", "authorization") if each in shown] == []


def test_a_sentence_on_a_terminal_is_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert _sentence("error: no such thing\x1b") == "error: no such thing\\x1b"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert _sentence("error: no such thing\x1b") == "error: no such\nthing\\x1b"


# where output goes that nobody takes ---------------------------------------------------------------------------


PRINTERS: Final[list[tuple[str, ...]]] = [
    ("call", *OK, "--root", "root"),
    ("call", "read_file", '{"path": "../x"}', "--root", "root"),
    ("tools",),
    ("tools", "--json"),
    ("batch", "in", "--output", "out", "--root", "root", "--model", "offline", "--json"),
    ("sessions",),
    ("sessions", "--json"),
    ("history", ""),
    ("verify",),
    ("doctor",),
    ("completion", "bash"),
]


def redirected(to: str) -> list[str]:
    return ["sh", "-c", f'exec "$@" {to}', "sh"]


@pytest.fixture
def full() -> Iterator[int]:
    """A descriptor that takes nothing."""
    with open("/dev/full", "wb") as device:
        yield device.fileno()


@pytest.fixture(scope="module")
def used_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home where one call has been."""
    folder = tmp_path_factory.mktemp("used")
    (folder / "root").mkdir()
    ForkedStrongroom(folder / "home", folder).run("call", *OK, "--root", "root")
    return folder / "home"


@pytest.mark.parametrize("arguments", PRINTERS, ids=" ".join)
def test_an_answer_that_cannot_be_printed_is_a_failure(
    strongroom: Strongroom, root: Path, used_home: Path, arguments: tuple[str, ...], full: int
) -> None:
    (strongroom.folder / "in").write_text("read a.txt")
    shutil.copytree(used_home, strongroom.home)
    done = strongroom.run(*arguments, stdout=full)
    assert (done.code, done.err) == (1, "error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("arguments", [PRINTERS[0], ("tools",), ("doctor",)], ids=" ".join)
def test_an_answer_to_a_closed_output_is_a_failure(
    strongroom: Strongroom, root: Path, arguments: tuple[str, ...]
) -> None:
    done = strongroom.run(*arguments, wrapper=redirected(">&-"))
    assert (done.code, done.err) == (1, "error: the output cannot be written: Bad file descriptor\n")


def test_answers_that_cannot_be_printed_are_a_failure(strongroom: Strongroom, root: Path, full: int) -> None:
    question = '{"id": 1, "tool": "read_file", "arguments": {"path": "a.txt"}}\n'
    stream = ("call", "--stdin", "--root", "root")
    done = strongroom.run(*stream, stdin=question * 2, stdout=full)
    closed = strongroom.run(*stream, stdin=question * 2, wrapper=redirected(">&-"))
    assert (done.code, closed.code, closed.out) == (1, 2, "")
    assert done.err.count("\n") == closed.err.count("\n") == 1
    assert "No space left" in done.err
    assert "is closed" in closed.err


@pytest.mark.parametrize("to", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_a_batch_needs_nowhere_to_print(strongroom: Strongroom, root: Path, to: str) -> None:
    (strongroom.folder / "in").write_text("read a.txt\nwrite b: 1")
    arguments = ("--output", "out", "--root", "root", "--model", "offline")
    done = strongroom.run("batch", "in", *arguments, wrapper=redirected(to))
    assert (done.code, done.out, done.err) == (0, "", "")
    lines = [json.loads(line) for line in (strongroom.folder / "out").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["ok", "ok"]
    assert strongroom.verdict.problem == ""


# names that cannot be ------------------------------------------------------------------------------------------


UNUSABLE: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("NUL in a root", {"root": "a\0b"}, "The root 'a\\x00b' of profile 'vault' cannot be used: embedded null byte."),
    ("a name that begins like offline's", {"model": "offlinexyz"}, "No model 'offlinexyz'."),
    ("NUL in a script", {"model": "scripted:a\0b"}, "No model 'scripted:a\\x00b'."),
    ("NUL in a model", {"model": "claude\0"}, "No model 'claude\\x00'."),
    ("NUL in a profile", {"profile": "a\0b"}, "No profile 'a\\x00b'."),
    ("the home of nobody", {"root": "~nosuchuser/x"}, "cannot be used: Could not determine home directory."),
    ("a name that is too long", {"root": "x" * 300}, "cannot be used: File name too long"),
]


@pytest.mark.parametrize(("item", "words"), [each[1:] for each in UNUSABLE], ids=[each[0] for each in UNUSABLE])
def test_an_item_with_a_name_that_cannot_be_is_wrong_usage_and_nothing_runs(
    strongroom: Strongroom, root: Path, item: dict[str, Any], words: str
) -> None:
    first = {"id": 1, "prompt": "write b: 1"}
    (strongroom.folder / "in").write_text("\n".join(map(json.dumps, [first, {"id": 2, "prompt": "x", **item}])))
    done = strongroom.run("batch", "in", "--output", "out", "--root", "root", "--model", "offline")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert words in done.err
    assert not (root / "b").exists()
    assert not (strongroom.folder / "out").exists()


def test_the_home_of_nobody_is_no_root(strongroom: Strongroom) -> None:
    done = strongroom.run("call", *OK, "--root", "~nosuchuser/x")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: The root '~nosuchuser/x' of profile 'vault' cannot be used: Could not determine home directory. "
        "Name another with --root.\n"
    )
