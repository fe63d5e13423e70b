"""The command line: help for every command, a sentence for every mistake, and never a traceback."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.shell_completion import ShellComplete

from supervisor.cli.main import _sentence, main
from supervisor.journal.facts import SessionDeleted, SessionOpened
from supervisor.journal.journal import open_journal
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, error, reply
from tests.supervisor.command import LOOKS_IN, Strongroom, answer_to, finished, workers
from workers.wire.messages import Context

if TYPE_CHECKING:
    from tests.script_server import Response

COMMANDS: Final = [
    *("console", "batch", "call", "acp", "daemon"),
    *("status", "tools", "doctor", "inbox"),
    *("sessions", "search", "prune", "history", "export", "why", "rules", "verify"),
    *("init", "completion", "login", "logout", "config"),
]
OK: Final = "read_file", '{"path": "a.txt"}'
COLUMNS: Final = 80
NOT_TEXT: Final = os.fsdecode(b"\xff")
QUESTION: Final = '{"id": 1, "tool": "read_file", "arguments": {"path": "a.txt"}}\n'


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(strongroom: Strongroom, command: str) -> None:
    done = strongroom.run(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"strongroom {command}" in done.out.split("Options:")[0].partition("\n")[2]
    assert [line for line in done.out.splitlines() if len(line) > COLUMNS] == []
    if command in ("batch", "daemon"):
        said = " ".join(done.out.partition("--faults PLAN")[2].split())
        assert "scripts/faults.toml is a sample, and lists all faults, moments and keys." in said


def test_version_and_help_make_nothing(strongroom: Strongroom) -> None:
    assert strongroom.run("--version").out.split()[1:]
    out = strongroom.run("-h").out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    assert not strongroom.home.exists()


WRONG: Final[dict[str, tuple[str, ...]]] = {
    "unknown command": ("fly", "me", "--plain"),
    "a misspelt command": ("statsu",),
    "unknown option": ("tools", "--fly"),
    "nothing to call": ("call",),
    "a tool and a stream": ("call", "read_file", "--stdin"),
    "too many arguments": ("call", "read_file", "{}", "x"),
    "a root that is missing": ("call", *OK, "--root", "nowhere"),
    "a root that is a file": ("call", *OK, "--root", "root/a.txt"),
    "a root that holds the home": ("call", *OK, "--root", "."),
    "a root in the home of nobody": ("call", *OK, "--root", "~nosuchuser/x"),
    "an empty profile name": ("call", *OK, "--root", "root", "--profile", "no"),
    "no output": ("batch", "in"),
    "no input": ("batch", "--output", "out"),
    "an input that is missing": ("batch", "in", "--output", "out", "--root", "root", "--model", "offline"),
    "a concurrency that is no number": ("batch", "in", "--output", "out", "--concurrency", "many"),
    "no session": ("history",),
    "a format nobody has": ("history", "x", "--format", "yaml"),
    "a shell nobody has": ("completion", "dos"),
    "the tools of no profile": ("tools", "--profile", "nobody"),
    "a session and a repository": ("console", "--session", "x", "--group", "elixir"),
    "an age that is none": ("prune", "--older-than", "30"),
    "no age": ("prune",),
    "two sessions": ("console", "--session", "x", "--continue"),
    "two sessions, and no command": ("-v", "--session", "x", "--continue"),
    "options before a command": ("--json", "sessions"),
    "a prompt like an option": ("-p", "-x y", "--model", "offline", "--root", "root"),
    "two ways to look": ("status", "--json", "--watch"),
    "a daemon that starts and stops": ("daemon", "--stop", "--socket", "x"),
    "a call that nobody made": ("why", "call_1"),
    "two extents": ("undo", "call_1", "--turn"),
    "arguments that are no text": ("call", "read_file", f'{{"path": "{NOT_TEXT}"}}', "--root", "root"),
    "a tool that is no text": ("call", NOT_TEXT, "{}", "--root", "root"),
    "a root that is no text": ("call", *OK, "--root", NOT_TEXT),
    "a profile that is no text": ("call", *OK, "--root", "root", "--profile", NOT_TEXT),
    "a session that is no text": ("history", NOT_TEXT),
    "a file that is no text": ("batch", NOT_TEXT, "--output", "out", "--root", "root", "--model", "offline"),
    "a model that is no text": ("batch", "prompts", "--output", "out", "--root", "root", "--model", NOT_TEXT),
}
SAID: Final = {
    "unknown command": "`strongroom --help` lists them. To ask it as a prompt: strongroom -p 'fly me'",
    "a misspelt command": "Did you mean 'status'?",
    "a root in the home of nobody": "error: The root '~nosuchuser/x' of profile 'vault' cannot be used: Could not "
    "determine home directory. Name another with --root.\n",
    "the tools of no profile": "Choose one of: vault, project, ",
    "a session and a repository": "use --session without --group and --technology",
    "two extents": "Use one of CALL, --turn and --session.",
    "options before a command": "strongroom sessions ...",
    "a prompt like an option": " prompt [OPTIONS]",
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage_is_a_sentence_and_exit_code_2(strongroom: Strongroom, root: Path, name: str) -> None:
    (strongroom.folder / NOT_TEXT).mkdir()
    (strongroom.folder / "prompts").write_text("x")
    strongroom.run(*WRONG[name]).assert_refused(SAID.get(name, ""))


CONFIGURATIONS: Final = {
    "a word nobody knows": ("modell = 'x'", "did you mean 'model'?"),
    "no TOML": ("=", "is not valid TOML"),
    "a profile that lacks": ("[profiles.x]", "needs both `root` and `tools`"),
}


@pytest.mark.parametrize(("text", "words"), CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("command", [("tools",), ("call", *OK, "--root", "root")], ids=["tools", "call"])
def test_a_wrong_configuration_is_a_sentence_and_exit_code_2(
    strongroom: Strongroom, root: Path, command: tuple[str, ...], text: str, words: str
) -> None:
    strongroom.configure(text)
    strongroom.run(*command).assert_refused("error: ", words)


def test_a_home_that_others_can_write_is_refused(strongroom: Strongroom, root: Path) -> None:
    strongroom.home.mkdir()
    strongroom.home.chmod(0o777)
    strongroom.run("call", *OK, "--root", "root").assert_refused("insecure permissions")


def test_a_home_is_private_whatever_the_umask(strongroom: Strongroom, root: Path, umask_000: None) -> None:
    assert strongroom.run("call", *OK, "--root", "root").code == 0
    modes = {file.name: file.stat().st_mode & 0o777 for file in [strongroom.home, *strongroom.home.iterdir()]}
    assert modes == {"home": 0o700, "journal.db": 0o600, "sessions.lock": 0o600}


def garbage(file: Path) -> None:
    file.write_bytes(b"garbage" * 1000)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, garbage])
@pytest.mark.parametrize(
    "command", [("call", *OK, "--root", "root"), ("sessions",), ("verify",)], ids=lambda each: each[0]
)
def test_a_journal_that_cannot_be_used_is_a_sentence_and_exit_code_1(
    strongroom: Strongroom, root: Path, command: tuple[str, ...], make: Any
) -> None:
    strongroom.home.mkdir(mode=0o700)
    make(strongroom.home / "journal.db")
    strongroom.run(*command).assert_refused("error: The journal ", code=1)


def test_an_output_whose_name_is_not_text_is_an_error(strongroom: Strongroom, root: Path) -> None:
    strongroom.batch("x", output=NOT_TEXT).assert_refused(code=1)


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
    ([], "--mo", "--mode"),
    (["console", "--profile"], "", "project"),
    (["call", "--profile", "project"], "list", "list_directory"),
    (["call"], "list", "list_files"),
    (["batch", "--model"], "off", "offline"),
    (["history"], "2026", "2026-1"),
    (["console", "--session"], "", "2026-1"),
]


@pytest.fixture
def completing(strongroom: Strongroom, monkeypatch: pytest.MonkeyPatch) -> ShellComplete:
    monkeypatch.setenv("STRONGROOM_HOME", str(strongroom.home))
    return ShellComplete(main, {}, "strongroom", "_COMPLETE")


@pytest.mark.parametrize(("typed", "incomplete", "offered"), COMPLETIONS)
def test_a_shell_completes(
    strongroom: Strongroom, completing: ShellComplete, typed: list[str], incomplete: str, offered: str
) -> None:
    strongroom.configure("")
    with open_journal(strongroom.home / "journal.db") as journal:
        journal.append("2026-1", SessionOpened("vault", "", Context("/v"), (), "call", "0"))
        journal.append("2026-2", SessionOpened("vault", "", Context("/v"), (), "call", "0"), SessionDeleted())
    found = completing.get_completions(typed, incomplete)
    assert offered in [item.value for item in found]
    assert all(item.value.startswith(incomplete) and item.value != "2026-2" for item in found)


def test_a_wrong_configuration_is_no_bother_while_one_types(strongroom: Strongroom, completing: ShellComplete) -> None:
    strongroom.configure("=")
    assert completing.get_completions(["call"], "") == []


@LOOKS_IN
def test_no_worker_inherits_the_environment(home: Path, root: Path) -> None:
    started = Strongroom(home, root.parent, ANTHROPIC_API_KEY="sk-ant-secret")  # what is forked has its parent's
    with started.start("call", "--stdin", "--root", "root") as process:
        answer_to(process, QUESTION)
        found = workers(process.pid)
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in found]
        finished(process)
    assert set(environments) == {b""}


KEY: Final = "sk-ant-api03-very-secret"
PRIVATE: Final = "a question that is nobody's business"


def test_no_log_has_the_key_or_what_was_asked(strongroom: Strongroom, root: Path) -> None:
    replies: list[Response] = [error(429, "slow down", "rate_limit_error", retry_after="0"), reply("a private answer")]
    with MessagesServer(replies) as server:
        strongroom.environment |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        done = strongroom.run("-vvvv", *strongroom.batch_of(PRIVATE, model="m"))
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
    strongroom = ForkedStrongroom.beside_a_root(tmp_path_factory.mktemp("used"))
    strongroom.run("call", *OK, "--root", "root")
    return strongroom.home


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
    stream = ("call", "--stdin", "--root", "root")
    done = strongroom.run(*stream, stdin=QUESTION * 2, stdout=full)
    closed = strongroom.run(*stream, stdin=QUESTION * 2, wrapper=redirected(">&-"))
    assert (done.code, closed.code, closed.out) == (1, 2, "")
    assert done.err.count("\n") == closed.err.count("\n") == 1
    assert "No space left" in done.err
    assert "is closed" in closed.err


@pytest.mark.parametrize("to", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_a_batch_needs_nowhere_to_print(strongroom: Strongroom, root: Path, to: str) -> None:
    done = strongroom.run(*strongroom.batch_of("read a.txt\nwrite b: 1"), wrapper=redirected(to))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert [line["status"] for line in strongroom.results] == ["ok", "ok"]
    assert strongroom.verdict.problem == ""
