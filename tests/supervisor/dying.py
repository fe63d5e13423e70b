"""`strongroom`, ended by SIGKILL at a chosen instant, or with its workers hung; for tests of crashes.

    python -m tests.supervisor.dying WHEN NUMBER ARGUMENTS...

WHEN is `before` or `after`: about to append to the journal for the NUMBER-th time, or just done with it; `text`: the
model has begun to talk; `hang`: as `after`, but every worker is stopped instead and "hung" written to stderr; `fullN`:
as `after`, but from then on no file holds more than N bytes, as if the disk were full. Before it dies it writes the
pids of its children to stderr, on one line.
"""

import os
import resource
import signal
import sys
from typing import Any

from supervisor.agent.conversation import Conversation
from supervisor.agent.model import TextDelta
from supervisor.cli import main
from supervisor.facts import Fact
from supervisor.journal import Journal
from tests.supervisor.command import children


def die() -> None:
    os.write(2, (" ".join(["pids", *map(str, children(os.getpid()))]) + "\n").encode())
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    for pid in children(os.getpid()):
        os.kill(pid, signal.SIGSTOP)
    os.write(2, b"hung\n")


def fill(left: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, resource.RLIM_INFINITY))


def prepare(when: str, number: int) -> None:
    append, begin = Journal.append, Conversation.__init__
    count = 0

    def counted(self: Journal, session: str, *new: Fact) -> None:
        nonlocal count
        count += 1
        if (when, count) == ("before", number):
            die()
        append(self, session, *new)
        if (when, count) == ("after", number):
            die()
        if (when, count) == ("hang", number):
            hang()
        if when.startswith("full") and count == number:
            fill(int(when.removeprefix("full")))

    def heard(self: Conversation, *arguments: Any) -> None:
        begin(self, *arguments)
        self._show = lambda event: die() if isinstance(event, TextDelta) else None

    Journal.append = counted  # type: ignore[method-assign]
    if when == "text":
        Conversation.__init__ = heard  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    prepare(sys.argv[1], int(sys.argv[2]))
    main(sys.argv[3:])
