"""What is said of a command that may have wanted input, by its text and by what it printed."""

from typing import Final

import pytest

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


@pytest.mark.parametrize(("stdout", "stderr"), ASKED)
def test_output_that_asks_is_remarked_upon(stdout: str, stderr: str) -> None:
    assert remarks(b"x", 0, stdout, stderr) == [NOTE]
    assert remarks(b"x", 0, "a\n" * 9999 + stdout, stderr) == [NOTE]


@pytest.mark.parametrize("text", NOT_ASKED)
def test_other_output_is_not(text: str) -> None:
    assert remarks(b"cat", 1, text, "") == remarks(b"cat", 1, "", text) == []


SILENT: Final = [
    ("cat", 0, True),
    ("/usr/bin/python3 -", 0, True),
    ("read x", 1, True),
    ("false", 1, True),
    ("true", 0, False),
    ("category --all", 0, False),
]


@pytest.mark.parametrize(("command", "code", "said"), SILENT)
def test_of_one_that_printed_nothing_it_is_said_where_it_may_be_why(command: str, code: int, said: bool) -> None:
    assert remarks(command.encode(), code, "", "") == ["its input was empty"] * said
