"""The real command line in real processes, on a home of its own, and what is left when one ends."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import pytest

from supervisor.config.settings import Settings, load
from supervisor.journal.chain_check import ChainCheck
from supervisor.journal.facts import Fact, TurnEnded, TurnStarted
from supervisor.journal.journal import JournalEntry, open_journal

CODE: Final = Path(__file__).parent.parent.parent
HANG_GUARD: Final = 60
_ISOLATED: Final = """
import sys
sys.path[:0] = sys.argv.pop(1).split(":")
sys.argv[0] = "strongroom"
from supervisor.__main__ import main
main()
"""
"""As the script `strongroom` runs it, from the first of these directories."""
_F = TypeVar("_F", bound=Fact)
LOOKS_IN: Final = pytest.mark.skipif(os.geteuid() != 0, reason="looks into processes that only root may look into")


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

    def assert_refused(self, *words: str, code: int = 2) -> None:
        """Make sure that it ended with a sentence that has these words, and with nothing else."""
        assert (self.code, self.out) == (code, "")
        assert self.err
        assert [each for each in words if each not in self.err] == []
        assert "Traceback" not in self.err


class Home:
    """A STRONGROOM_HOME, and what is recorded in it; `folder` and `environment` are those of processes on it."""

    def __init__(self, home: Path, folder: Path, **environment: str) -> None:
        self.home = home
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "STRONGROOM_HOME": str(home), **environment}

    def configure(self, text: str) -> None:
        """Write the configuration, into a home that is made if need be."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "config.toml").write_text(text)

    @property
    def settings(self) -> Settings:
        return load({"STRONGROOM_HOME": str(self.home)})

    @property
    def entries(self) -> list[JournalEntry]:
        with open_journal(self.home / "journal.db") as journal:
            return list(journal.everything())

    @property
    def facts(self) -> list[Fact]:
        return [entry.fact for entry in self.entries]

    @property
    def asked(self) -> list[str]:
        """The lines of all turns, in order."""
        return [fact.text for fact in self.facts if isinstance(fact, TurnStarted)]

    @property
    def ends(self) -> list[str]:
        """How all turns have ended, in order."""
        return [fact.status for fact in self.facts if isinstance(fact, TurnEnded)]

    @property
    def has_done_anything(self) -> bool:
        """Whether a fact is recorded."""
        return (self.home / "journal.db").exists() and bool(self.entries)

    @property
    def sessions(self) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for entry in self.entries:
            found.setdefault(entry.session, []).append(entry.fact)
        return found

    def facts_of(self, session: str, kind: type[_F]) -> list[_F]:
        return [fact for fact in self.sessions[session] if isinstance(fact, kind)]

    def record(self, session: str, *facts: Fact) -> None:
        """Write facts as a daemon before has."""
        with open_journal(self.home / "journal.db") as journal:
            journal.append(session, *facts)

    @property
    def verdict(self) -> ChainCheck:
        with open_journal(self.home / "journal.db") as journal:
            return journal.verify()


class Strongroom(Home):
    """Runs commands. `program` is what comes after `python -m`."""

    @classmethod
    def beside_a_root(cls, folder: Path, **environment: str) -> Self:
        """The command line in a folder with a root that holds a note, and no home yet."""
        (folder / "root").mkdir()
        (folder / "root" / "a.txt").write_text("hello\n")
        return cls(folder / "home", folder, **environment)

    def command(self, *arguments: str, program: Sequence[str] = ("supervisor",)) -> list[str]:
        if program != ("supervisor",):
            return [sys.executable, "-m", *program, *arguments]
        return [sys.executable, "-I", "-c", _ISOLATED, self.environment.get("PYTHONPATH", str(CODE)), *arguments]

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

    def batch(self, items: str, *options: str, **more: str) -> Done:
        """Run a batch; arguments as for `batch_of`."""
        return self.run(*self.batch_of(items, *options, **more))

    def batch_of(
        self, items: str, *options: str, model: str = "offline", output: str = "out.jsonl", root: str = "root"
    ) -> list[str]:
        """Write down what a batch is asked; return the arguments that run it. The root "" is the profile's own."""
        (self.folder / "in").write_text(items)
        rooted = ["--root", root] if root else []
        return ["batch", "in", "--output", output, *rooted, "--model", model, *options]

    @property
    def results(self) -> list[dict[str, Any]]:
        """The lines that a batch has written."""
        return [json.loads(line) for line in (self.folder / "out.jsonl").read_bytes().splitlines()]


@contextmanager
def ignored(*signals: signal.Signals) -> Iterator[None]:
    """What starts meanwhile ignores these, as with nohup or in the background of a shell."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in signals}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def wait_until(holds: Callable[[], object], tell: Callable[[], object] = str) -> None:
    """Ask again and again, which takes its time, until it holds; `tell` says what is there if it never does."""
    deadline = time.monotonic() + HANG_GUARD
    while not holds():
        assert time.monotonic() < deadline, tell()


def children(pid: int) -> list[int]:
    """Return the pids of a process's children, and of theirs; of one that has just ended there are none."""
    found: list[int] = []
    with suppress(OSError):
        found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
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


def answer_to(process: "subprocess.Popen[bytes]", line: str | bytes) -> str:
    """Write to a process; return the next line that it writes."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(line.encode() if isinstance(line, str) else line)
    process.stdin.flush()
    return process.stdout.readline().decode()


def last_family(errors: str) -> Family:
    """The processes that a killed one had, by its last words."""
    (line,) = [line for line in errors.splitlines() if line.startswith("pids")]
    return Family([int(pid) for pid in line.split()[1:]])


def finished(process: "subprocess.Popen[bytes]", given: bytes = b"") -> Done:
    """Feed a process, wait for its end, and return it; it does not outlive a failed wait."""
    try:
        out, err = process.communicate(given or None, timeout=HANG_GUARD)
    finally:
        process.kill()
    return Done(process.returncode, (out or b"").decode(), err.decode())
