"""A call of a program and the line that says it are the same, to the character."""

import json
from typing import Final

import pytest

from supervisor.display.command_text import as_arguments, text_of, words_of
from tests.each_row import each_row

WORDS: Final = [
    (["ls", "-l", "a b"], "ls -l 'a b'"),
    (["node", "-e", "f('x')"], "node -e \"f('x')\""),
    (["x", 'it\'s "so" \\ $(y)'], 'x "it\'s \\"so\\" \\\\ $(y)"'),
    (["x", "", "'", "\\'"], "x '' \"'\" \"\\\\'\""),
    (["x", "#", "a#b", "two\nlines"], "x '#' 'a#b' 'two\nlines'"),
    (["ls;", "id", "|", "é"], "'ls;' id '|' 'é'"),
]


@each_row(("argv", "line"), WORDS, ids=[line for _, line in WORDS])
def test_words_are_read_back_as_they_were(argv: list[str], line: str) -> None:
    assert words_of("exec_shell", json.dumps({"command": argv[0], "args": argv[1:]})) == line
    assert json.loads(as_arguments(line)) == {"command": argv[0], "args": argv[1:]}


OTHERS: Final = [
    ("run_cmd", '{"command": "ls -l"}', "ls -l"),
    ("run_cmd", '{"command": "make", "timeout_s": 90}', "make"),
    ("run_cmd", '{"command": "make", "timeout_s": 1e999}', '{"command": "make", "timeout_s": 1e999}'),
    ("read_file", '{"path": "a"}', '{"path": "a"}'),
    ("exec_shell", '{"command": "ls", "args": [1]}', '{"command": "ls", "args": [1]}'),
    ("exec_shell", '{"command": "ls", "more": []}', '{"command": "ls", "more": []}'),
    ("exec_shell", '{"command": "ls", "command": "rm"}', '{"command": "ls", "command": "rm"}'),
    ("exec_shell", "[" * 100_000, "[" * 100_000),
]


@each_row(("tool", "arguments", "text"), OTHERS, ids=range(len(OTHERS)))
def test_a_call_that_no_words_can_say_has_none(tool: str, arguments: str, text: str) -> None:
    assert words_of(tool, arguments) is None
    assert text_of(tool, arguments) == text


@each_row("line", ["", "  ", "ls 'a", 'ls "a', "ls a\\", "''"])
def test_a_line_that_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        as_arguments(line)
