"""The real command line in real processes, on a home of its own, and what is left when one ends."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from supervisor.journal.facts import Fact
from supervisor.journal.journal import ChainCheck, JournalEntry, open_journal

CODE: Final = Path(__file__).parent.parent.parent
HANG_GUARD: Final = 60


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What stdout holds: one JSON document and nothing else."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Strongroom:
    """Runs commands. `program` is what comes after `python -m`."""

    def __init__(self, home: Path, folder: Path, **environment: str) -> None:
        self.home = home
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "STRONGROOM_HOME": str(home), **environment}

    def command(self, *arguments: str, program: Sequence[str] = ("supervisor",)) -> list[str]:
        return [sys.executable, "-m", *program, *arguments]

    def run(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        program: Sequence[str] = ("supervisor",),
        wrapper: Sequence[str] = (),
        stdout: int = subprocess.PIPE,
    ) -> Done:
        """Run a command to its end; standard input is /dev/null unless there is something to read."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        end = subprocess.PIPE if given else subprocess.DEVNULL
        return finished(self.begin(arguments, program, wrapper, end, stdout), given)

    def start(self, *arguments: str, program: Sequence[str] = ("supervisor",)) -> "subprocess.Popen[bytes]":
        """Start a command with pipes to all its ends."""
        return self.begin(arguments, program, (), subprocess.PIPE, subprocess.PIPE)

    def begin(
        self, arguments: Sequence[str], program: Sequence[str], wrapper: Sequence[str], stdin: int, stdout: int
    ) -> "subprocess.Popen[bytes]":
        """Start a command; standard input and output are as `Popen` has them."""
        return subprocess.Popen(
            [*wrapper, *self.command(*arguments, program=program)],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": str(CODE), **self.environment},
            cwd=self.folder,
        )

    @property
    def entries(self) -> list[JournalEntry]:
        with open_journal(self.home / "journal.db") as journal:
            return list(journal.everything())

    @property
    def facts(self) -> list[Fact]:
        return [entry.fact for entry in self.entries]

    @property
    def has_done_anything(self) -> bool:
        """Whether a fact is recorded."""
        return (self.home / "journal.db").exists() and bool(self.entries)

    @property
    def sessions(self) -> dict[str, list[Fact]]:
        """The facts of each session."""
        found: dict[str, list[Fact]] = {}
        for entry in self.entries:
            found.setdefault(entry.session, []).append(entry.fact)
        return found

    @property
    def verdict(self) -> ChainCheck:
        with open_journal(self.home / "journal.db") as journal:
            return journal.verify()


@contextmanager
def ignored(*signals: signal.Signals) -> Iterator[None]:
    """What starts meanwhile ignores these, as with nohup or in the background of a shell."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in signals}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def children(pid: int) -> list[int]:
    """Return the pids of a process's children, and of theirs."""
    found = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*found, *(grandchild for child in found for grandchild in children(child))]


def workers(pid: int) -> list[int]:
    """Return the pids of the workers behind a client that has a daemon of its own."""
    return children(pid)[1:]


class Family:
    """A process's children at some moment; they can be watched after it has ended."""

    def __init__(self, pids: Sequence[int]) -> None:
        self.handles = []
        for pid in pids:
            try:
                self.handles.append(os.pidfd_open(pid))
            except ProcessLookupError:
                continue  # gone already

    def is_gone(self) -> bool:
        """Wait until all have ended, or it is certain that they do not; say whether they have."""
        gone = True
        for handle in self.handles:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            gone = bool(poll.poll(HANG_GUARD * 1000)) and gone
            os.close(handle)
        return gone


def finished(process: "subprocess.Popen[bytes]", given: bytes = b"") -> Done:
    """Feed a process, wait for its end, and return it; it does not outlive a failed wait."""
    try:
        out, err = process.communicate(given or None, timeout=HANG_GUARD)
    finally:
        process.kill()
    return Done(process.returncode, (out or b"").decode(), err.decode())
