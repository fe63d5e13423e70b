"""What is said of a command that may have wanted input, by its text and by what it printed."""

from typing import Final

from tests.each_row import each_row
from workers.shell.no_input import NOTE, remarks

ASKED: Final = [
    ("Name: ", ""),
    ("", "Password:"),
    ("package name: (root) ", ""),
    ("", "rm: remove regular empty file 'a'? "),
    ("1) a\n#? ", ""),
    (">>> ", ""),
    ("", "Do you want to continue? [y/N]: Aborted!\n"),
    ("", "Continue connecting (yes/no/[fingerprint])? Host key verification failed.\n"),
    ("", "EOFError: EOF when reading a line\n"),
    ("", "error: Terminal is dumb, but EDITOR unset\nPlease supply the message using -m\n"),
    ("", "fatal: could not read Username for 'https://x': terminal prompts disabled\n"),
    ("", "the input device is not a TTY\n"),
    ("", "gpg: cannot open '/dev/tty': No such file or directory\n"),
]
NOT_ASKED: Final = ["done\n", "[1, 2]", '{"a": 1}', "<p>x</p>", "total: 5", "a > b\n", "Compiling x [y/n]\nFinished\n"]


@each_row(("stdout", "stderr"), ASKED)
def test_output_that_asks_is_remarked_upon(stdout: str, stderr: str) -> None:
    assert remarks(b"x", stdout, stderr) == [NOTE]
    assert remarks(b"x", "a\n" * 9999 + stdout, stderr) == [NOTE]


@each_row("text", NOT_ASKED)
def test_other_output_is_not(text: str) -> None:
    assert remarks(b"cat", text, "") == remarks(b"cat", "", text) == []


SILENT: Final = [
    ("cat", True),
    ("/usr/bin/python3 -", True),
    ("read x", True),
    ("cat > x", True),
    ("sort -u", True),
    ("tr a b", True),
    ("false", False),
    ("true", False),
    ("grep -q x file", False),
    ("cat file > x", False),
    ("python -m venv .venv", False),
    ("node build.js", False),
    ("bash -c 'exit 1'", False),
    ("category --all", False),
]


@each_row(("command", "said"), SILENT)
def test_of_one_that_printed_nothing_it_is_said_where_it_may_be_why(command: str, said: bool) -> None:
    assert remarks(command.encode(), "", "") == ["its input was empty"] * said
