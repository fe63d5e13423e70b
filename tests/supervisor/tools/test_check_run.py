"""A check has passed where its exit code says so, and nowhere else."""

from typing import Any, Final, NamedTuple

import pytest

from supervisor.errors import ConfigError
from supervisor.journal.facts import CallEnded
from supervisor.tools.check_outcome import check_problem
from supervisor.tools.check_run import check_arguments
from tests.each_row import each_row


class Ended(NamedTuple):
    """How a check ended, and what is said of it."""

    content: str
    problem: str
    kind: Any = None


ROWS: Final = (
    Ended('{"stdout":"12 passed","stderr":"","exit_code":0}', ""),
    Ended('{"stdout":"","stderr":"","exit_code":3}', "exit code 3"),
    Ended('{"stdout":"why\\n","stderr":"not","exit_code":1}', "exit code 1\nwhy\nnot"),
    Ended('{"stdout":"\\u001b[31mred","stderr":"","exit_code":1}', "exit code 1\n\\x1b[31mred"),
    Ended('{"stdout":"0","stderr":""}', "exit code None\n0"),
    Ended("0", "exit code None"),
    Ended("It is cut", "exit code None"),
    Ended("run_cmd did not end within 30 s.", "timeout: run_cmd did not end within 30 s.", "timeout"),
)


@each_row("row", ROWS)
def test_a_check_has_passed_where_its_exit_code_says_so(row: Ended) -> None:
    ended = CallEnded(1, "check_1", "run_cmd", row.kind is None, row.content, "json", kind=row.kind)
    assert check_problem(ended) == row.problem


def test_of_what_a_check_printed_the_end_is_told() -> None:
    printed = "\\n".join(map(str, range(100)))
    ended = CallEnded(1, "check_1", "run_cmd", True, f'{{"stdout":"{printed}","exit_code":1}}', "json")
    assert check_problem(ended).split("\n") == ["exit code 1", *map(str, range(80, 100))]


def test_a_check_is_a_line_for_the_shell_or_a_program_and_its_words() -> None:
    assert check_arguments(("run_cmd", "exec_shell"), "a && b", 5.0) == (
        "run_cmd",
        '{"command":"a && b","timeout_s":5.0}',
    )
    assert check_arguments(("exec_shell",), "npm 'run' test", 5.0) == (
        "exec_shell",
        '{"command":"npm","args":["run","test"]}',
    )
    for tools, command in (((), "ls"), (("exec_shell",), "ls 'x"), (("exec_shell",), " ")):
        with pytest.raises(ConfigError):
            check_arguments(tools, command, 5.0)
