"""Journals for tests: filled, checked, refused, and used by programs of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.errors import JournalError
from supervisor.journal.facts import TurnStarted
from supervisor.journal.journal import ChainCheck, Journal, open_journal
from tests.supervisor.command import CODE


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


def refusal(path: Path) -> JournalError:
    with pytest.raises(JournalError) as caught, open_journal(path) as journal:
        append(journal, 1)
    return caught.value


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def run(program: str, *arguments: object, status: int = 0) -> list[str]:
    """Run a program, which prints lines and complains of nothing."""
    command = [sys.executable, "-u", "-c", program, *map(str, arguments)]
    done = subprocess.run(command, cwd=CODE, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    return done.stdout.splitlines()
