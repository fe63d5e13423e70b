"""`strongroom` with a daemon of its own, ended by SIGKILL at a chosen instant, or with its workers hung.

    python -m tests.supervisor.dying WHEN NUMBER ARGUMENTS...

WHEN is `before` or `after`: client or daemon is about to append to the journal for the NUMBER-th time, or just done
with it, and both die; `lost`: as `after`, but the daemon dies alone; `text`: the model has begun to talk, and both die;
`line` or `lined`: the client is about to write its NUMBER-th result, or just done with it, and dies; `hang`: as
`after`, but every worker is stopped instead and "hung" written to stderr, and a cancelled commit is soon given up;
`fullN`: from its NUMBER-th result on no file of the client's holds more than N bytes, as if the disk were full. Who
dies first writes the pids of its children, and its own where somebody outlives it, to stderr, on one line.
"""

import os
import resource
import runpy
import signal
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import wraps
from inspect import unwrap
from typing import Any, Final

from supervisor.journal.facts import Fact
from supervisor.journal.journal import Journal
from tests.supervisor.command import children

DAEMON: Final = "--daemon"


def die(*others: int) -> None:
    pids = [*children(os.getpid()), *([os.getpid()] if others else [])]
    os.write(2, (" ".join(["pids", *map(str, pids)]) + "\n").encode())
    for pid in (*others, os.getpid()):
        os.kill(pid, signal.SIGKILL)


def hang() -> None:
    for pid in children(os.getpid()):
        os.kill(pid, signal.SIGSTOP)
    os.write(2, b"hung\n")


def batches(path: str) -> int:
    """How many batches the journal has seen begin: clients append that themselves."""
    if not os.path.exists(path):
        return 0
    with closing(sqlite3.connect(path)) as connection:
        try:
            found = connection.execute("SELECT count(*) FROM facts WHERE session LIKE 'batch-%'").fetchone()
        except sqlite3.Error:
            return 0
        return int(found[0])


def prepare_client(when: str, number: int) -> None:
    from supervisor.clients.batch.items import Result
    from supervisor.clients.batch.outputs import OutputFile
    from supervisor.clients.connection import spawn

    append, write = Journal.append, OutputFile.write
    lines = 0

    @wraps(append)
    def counted(self: Journal, session: str, *new: Fact) -> None:
        if (when, number) == ("before", 1):
            die()
        append(self, session, *new)
        if (when, number) == ("after", 1):
            die()

    def written(self: OutputFile, result: Result) -> None:
        nonlocal lines
        lines += 1
        if lines == number and when.startswith("full"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(when.removeprefix("full")), resource.RLIM_INFINITY))
        if (when, lines) == ("line", number):
            die()
        write(self, result)
        if (when, lines) == ("lined", number):
            die()

    Journal.append = counted  # type: ignore[method-assign, assignment]
    OutputFile.write = written  # type: ignore[method-assign]
    program = (sys.executable, "-P", "-X", "utf8", "-m", "tests.supervisor.dying", DAEMON, when, str(number))
    spawn._command = lambda: program


def prepare_daemon(when: str, number: int, *, alone: bool = False) -> None:
    """Have this process end itself, and the client that started it unless it is `alone`."""
    from supervisor.agent.conversation import Conversation
    from supervisor.agent.models.model import TextDelta
    from supervisor.config.settings import load
    from supervisor.session import child_specs, resources

    Journal.append = unwrap(Journal.append)  # type: ignore[method-assign] # a forked daemon has the client's
    begin, commit, opened = Journal.begin, Journal.commit, Conversation.__init__
    journal = str(load().journal)
    before = batches(journal)
    others = () if alone or when == "lost" else (os.getppid(),)
    own, moment = 0, ""

    def begun(self: Journal, appends: Iterable[tuple[str, Sequence[bytes]]]) -> None:
        nonlocal own, moment
        together = list(appends)  # what is committed together happens at one instant
        earlier = own + batches(journal) - before
        own += len(together)
        moment = when if earlier < number <= earlier + len(together) else ""
        if moment == "before":
            die(*others)
        begin(self, together)

    def committed(self: Journal) -> None:
        commit(self)
        if moment in {"after", "lost"}:
            die(*others)
        if moment == "hang":
            hang()

    def heard(self: Conversation, *arguments: Any) -> None:
        session, writer, model, router, system, _, *rest = arguments
        show = lambda event: die(*others) if isinstance(event, TextDelta) else None  # noqa: E731
        opened(self, session, writer, model, router, system, show, *rest)

    Journal.begin, Journal.commit = begun, committed  # type: ignore[method-assign, assignment]
    if when == "hang":
        real = child_specs.child_spec
        resources.child_spec = lambda *given: replace(real(*given), commit_grace=0.2)  # type: ignore[attr-defined]
    if when == "text":
        Conversation.__init__ = heard  # type: ignore[method-assign, assignment]


def main(arguments: list[str]) -> None:
    if arguments[0] == DAEMON:
        when, number, *rest = arguments[1:]
        prepare_daemon(when, int(number))
        sys.argv[1:] = rest
        runpy.run_module("supervisor.daemon", run_name="__main__", alter_sys=False)
        return
    from supervisor.cli.main import main as strongroom

    when, number, *rest = arguments
    prepare_client(when, int(number))
    strongroom(rest)


if __name__ == "__main__":
    main(sys.argv[1:])
