"""Journals for tests: filled, checked, refused, and used by programs of their own."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.errors import JournalError
from supervisor.journal.chain_check import ChainCheck
from supervisor.journal.facts import TurnStarted
from supervisor.journal.journal import Journal, open_journal
from tests.supervisor.command import CODE

BEGIN: Final = """
import os, resource, signal, sqlite3, sys
from pathlib import Path
from supervisor.errors import JournalError
from supervisor.journal.facts import TurnStarted
from supervisor.journal.journal import open_journal
path = Path(sys.argv[1])
"""
"""How a program begins whose first argument is the path of a journal."""

WRITES: Final = """
with open_journal(path) as journal:
    for number in range(1, int(sys.argv[3]) + 1):
        journal.append(sys.argv[2], TurnStarted(number, "x" * int(sys.argv[4])), TurnStarted(number, "y"))
        print(number, flush=True)
"""
"""Appends two facts at a time and says so. Its arguments: the session, how often, and the length of the first."""


def line(number: int) -> TurnStarted:
    return TurnStarted(number, f"line {number}")


def append(journal: Journal, *numbers: int) -> None:
    for number in numbers:
        journal.append("s", line(number))


def filled(path: Path, count: int = 5) -> None:
    with open_journal(path) as journal:
        append(journal, *range(1, count + 1))


def verdict(path: Path) -> ChainCheck:
    with open_journal(path) as journal:
        return journal.verify()


def rows(path: Path) -> int:
    """Return how many rows a journal has in which there is no problem."""
    found = verdict(path)
    assert found.problem == ""
    return found.rows


def execute(path: Path, *statements: str) -> list[Any]:
    """Let another program do something to the database; return what the last statement found."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [connection.execute(statement).fetchall() for statement in statements][-1]


def refusal(path: Path) -> JournalError:
    with pytest.raises(JournalError) as caught, open_journal(path) as journal:
        append(journal, 1)
    return caught.value


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def run(program: str, *arguments: object, status: int = 0) -> list[str]:
    """Run a program that goes on from `BEGIN`, prints lines and complains of nothing."""
    command = [sys.executable, "-u", "-c", BEGIN + program, *map(str, arguments)]
    done = subprocess.run(command, cwd=CODE, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    return done.stdout.splitlines()
