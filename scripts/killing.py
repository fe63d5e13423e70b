"""Commits that are killed at any of their steps, with their worker or with their daemon, and what became of each.

Rule: each commit stops before one of its steps, by chance, and is killed there.
Every root must be as before or as after, every outcome must say which, and nothing else may be left in it. Where the
turn goes on, it must be as after: the call is made again, as it was decided.
"""

import argparse
import mmap
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from supervisor.acp import extensions
from supervisor.errors import JournalError
from supervisor.journal.facts import CallDecided, CallEnded, Fact, TurnEnded
from supervisor.journal.journal import open_journal
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.supervisor.daemon.test_absent_tools import PRELUDE as WITHOUT_NAMESPACES
from tests.supervisor.histories import DONE, call
from tests.workers.commit.snapshot import Snapshot, snapshot
from tests.workers.commit.test_killed import Tree, make
from tests.workers.restore.test_settlement import STEPS
from workers.tree.drafts import remove_directory

_PATIENCE_S: Final = 120.0
_LOOK_S: Final = 0.05
_STOPPING_S: Final = 5.0
"""Seconds within which a commit has stopped or ended, on a machine that does other things, too."""
_UNDO: Final = "undo"


class Case(NamedTuple):
    """A root, and the call that changes it."""

    root: Tree
    call: Mapping[str, Any]
    undone: bool = False
    """What is killed is the undo of it."""


_MANY: Final[Tree] = {"d": 0o755, **{f"d/{number}": str(number) for number in range(60)}}
CASES: Final[Mapping[str, Case]] = {
    "append": Case({"log": "begin\n"}, call("edit_file", path="log", old="begin\n", new="begin\none\n")),
    "new file": Case({"a": "a"}, call("write_file", path="x/y/z", content="new")),
    "command": Case({"log": "begin\n"}, call("run_cmd", command="echo one >> log; echo said")),
    "many names": Case(_MANY, call("run_cmd", command="for n in d/*; do echo one >> $n; done; cp -r d e")),
    "modes, links": Case(
        {"d": 0o755, "d/x": "x", "y": "y"},
        call("run_cmd", command="chmod 555 d; chmod 600 y; ln -s y l; ln y h; mkfifo p; mkdir n"),
    ),
    "kinds exchanged": Case(
        {"a": "a", "d": 0o755, "d/x": "x"}, call("run_cmd", command="rm a; mkdir a; echo > a/in; rm -r d; echo f > d")
    ),
    "moved": Case(_MANY, call("run_cmd", command="mkdir e; mv d/* e/; rmdir d")),
    "rm -rf": Case(_MANY, call("run_cmd", command="rm -rf -- *")),
    _UNDO: Case(_MANY, call("run_cmd", command="rm -rf d; echo one > e"), undone=True),
}


_HANGING: Final = """
import mmap, os, sys, time
from workers import kernel
from workers.__main__ import main
from workers.commit import exchange
from workers.commit.upper_layer import UpperLayer
from workers.files import atomic, proposal

with open({switch!r}, "r+b") as file:
    switch = mmap.mmap(file.fileno(), {size})
left = 0

def step(happens, *_given):
    global left
    if left and happens in {steps!r}:
        left -= 1
        if not left and switch[0]:
            switch[1 + os.urandom(1)[0]] = 1
            while True:
                time.sleep(3600)

def rename(*given):
    step("open")
    kernel.rename(*given)
    step("open")

def slowly(act):
    def acts(*given):
        global left
        left = 1 + int.from_bytes(os.urandom(2), "big") % 2 ** (1, 2, 3, 4, 5, 6, 7, 9)[os.urandom(1)[0] % 8]
        try:
            return act(*given)
        finally:
            left = 0
    return acts

exchange.rename = atomic.rename = rename
UpperLayer.commit, proposal.replace = slowly(UpperLayer.commit), slowly(proposal.replace)
sys.addaudithook(step)
main()
"""
"""A worker that stops before a step of its commit, and says so, while that is switched on."""

_DAEMON: Final = """
from supervisor.pool.template_process import worker_command
worker_command.__defaults__ = ({worker!r},)
"""


class Switch:
    """Lets commits stop at some step, and counts those that do; a file that this process and all workers share."""

    SIZE: Final = 1 + 2**8

    def __init__(self, file: Path) -> None:
        self.file = file
        file.write_bytes(bytes(self.SIZE))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), self.SIZE)

    def turn(self, *, on: bool) -> None:
        """Turn it on or off; nothing has stopped then."""
        self._shared[:] = bytes([on]) + bytes(self.SIZE - 1)

    @property
    def stopped(self) -> int:
        """How many have stopped, or one less where two have said so in the same place."""
        return sum(self._shared[1:])


class Round:
    """All cases at once in one daemon, and one kill."""

    def __init__(self, daemon: DaemonProcess, base: Path, switch: Switch, *, whole: bool) -> None:
        self._daemon, self._base, self._switch, self._whole = daemon, base, switch, whole
        self._before: dict[str, Snapshot] = {}
        self._sessions: dict[str, str] = {}
        self._done: dict[str, int] = {}
        """The outcomes that a session had before."""

    def run(self, afters: Mapping[str, Snapshot]) -> dict[str, str]:
        """Return what became of each case: "not met", "as before", "as after", or what is wrong.

        `afters` are what the roots are to be.
        """
        with ExitStack() as clients:
            client = self._client(clients)
            for name, case in CASES.items():
                self._open(client, name, case)
            for name, session in self._sessions.items():
                if not CASES[name].undone:
                    client.begin_prompt(session, "go")
            questions = [client.until(ASK) for _ in range(len(CASES) - 1)]
            met = self._strike(client, questions)
            if self._whole:
                clients.close()
                self._daemon.wait()
                self._daemon.start()
                client = self._client(clients)
                for session in self._sessions.values():
                    client.load(session)
            self._wait(client, met)
            for session in self._sessions.values():
                client.begin("session/close", {"sessionId": session})
            client.status()
        facts = self._facts()
        return {name: self._judge(name, facts[name], afters) if name in met else "not met" for name in CASES}

    def _client(self, clients: ExitStack) -> Lines:
        client = clients.enter_context(self._daemon.client())
        client.connection.settimeout(_PATIENCE_S)
        return client

    def _strike(self, client: Lines, questions: Sequence[Any]) -> set[str]:
        """Let all commits begin and stop, and kill the daemon, or all workers; return the cases that were met."""
        self._switch.turn(on=True)
        client.begin(extensions.UNDO_METHOD, {"sessionId": self._sessions[_UNDO], "scope": "session"})
        for question in questions:
            client.allow(question)
        until = time.monotonic() + _STOPPING_S
        while time.monotonic() < until:
            time.sleep(_LOOK_S)
            ended = sum(bool(self._ends(name, facts)) for name, facts in self._facts().items())
            if self._switch.stopped + ended >= len(CASES):
                break
        met = {name for name, facts in self._facts().items() if self._is_within(name, facts)}
        self._switch.turn(on=False)
        if self._whole:
            self._daemon.kill()
        for pid in (
            [] if self._whole else [each["pid"] for pool in client.status()["pools"] for each in pool["workers"]]
        ):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return met

    def _open(self, client: Lines, name: str, case: Case) -> None:
        root = self._base / name
        make(root, case.root)
        model = scripted(self._base / f"{name}.jsonl", {"calls": [dict(case.call)]}, DONE)
        mode = "edits" if case.undone else "ask"
        self._sessions[name] = session = client.new_session(root, model=model, profile="code", mode=mode)
        if case.undone:
            _turn(client, session)
        self._done[name] = sum(isinstance(fact, CallEnded) for fact in self._facts()[name])
        self._before[name] = _tree(root)

    def _facts(self) -> dict[str, list[Fact]]:
        with open_journal(self._daemon.home / "journal.db") as journal:
            return {name: [each.fact for each in journal.of_session(at)] for name, at in self._sessions.items()}

    def _ends(self, name: str, facts: Sequence[Fact]) -> list[CallEnded]:
        return [fact for fact in facts if isinstance(fact, CallEnded)][self._done[name] :]

    def _is_within(self, name: str, facts: Sequence[Fact]) -> bool:
        """Say whether a commit was decided and has no end yet."""
        last = next((fact for fact in reversed(facts) if isinstance(fact, CallDecided | CallEnded)), None)
        return isinstance(last, CallDecided) and last.committed and not self._ends(name, facts)

    def _wait(self, client: Lines, met: set[str]) -> None:
        """Wait until everything has ended that can, and say yes to what is asked.

        An undo that was cut off with the daemon has an end only where its commit was decided.
        """
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            facts = self._facts()
            turns = all(any(isinstance(each, TurnEnded) for each in facts[name]) for name in CASES)
            if turns and all(self._ends(name, facts[name]) for name in met):
                return
            client.status()
            for question in [each for each in client.heard if each.get("method") == ASK]:
                client.heard.remove(question)
                client.allow(question)
            time.sleep(_LOOK_S)

    def _judge(self, name: str, facts: Sequence[Fact], afters: Mapping[str, Snapshot]) -> str:
        ends, now = self._ends(name, facts), _tree(self._base / name)
        if len(ends) != 1:
            return f"{len(ends)} outcomes"
        (ended,) = ends
        if ended.kind == "outcome_unknown":
            return "unknown"
        if now not in (self._before[name], afters[name]):
            return "twice or half"
        if ended.ok != (now == afters[name]):
            return "told wrongly"
        return "as after" if ended.ok else "as before"


def _turn(client: Lines, session: str) -> None:
    """Run a turn, and say yes to what is asked."""
    number = client.begin_prompt(session, "go")
    while (message := client.read()).get("id") != number or "method" in message:
        if message.get("method") == ASK:
            client.allow(message)


def _tree(root: Path) -> Snapshot:
    return {path: entry._replace(ctime_ns=0, mtime_ns=0) for path, entry in snapshot(root).items()}


def _afters(daemon: DaemonProcess, base: Path) -> dict[str, Snapshot]:
    """Return what each root is after its call."""
    found = {}
    with daemon.client() as client:
        client.connection.settimeout(_PATIENCE_S)
        for name, case in CASES.items():
            root = base / name
            make(root, case.root)
            model = scripted(base / f"{name}.jsonl", {"calls": [dict(case.call)]}, DONE)
            session = client.new_session(root, model=model, profile="code")
            _turn(client, session)
            if case.undone:
                client.request(extensions.UNDO_METHOD, {"sessionId": session, "scope": "session"})
            found[name] = _tree(root)
    return found


def main() -> int:
    """Return 0 where nothing is unknown, done twice or done by halves."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=1000, help="commits that are met within")
    options.add_argument("--copies", action="store_true", help="without namespaces: commands run in copies of the root")
    options.add_argument("--progress", action="store_true")
    given = options.parse_args()
    base = Path(tempfile.mkdtemp(prefix="strongroom-kills-"))
    (base / "home").mkdir()
    daemon = DaemonProcess(base / "home", base)
    switch = Switch(base / "switch")
    worker = _HANGING.format(switch=str(switch.file), size=Switch.SIZE, steps=STEPS)
    daemon.prelude = (WITHOUT_NAMESPACES if given.copies else "") + _DAEMON.format(worker=worker)
    found: dict[bool, Counter[tuple[str, str]]] = {False: Counter(), True: Counter()}
    with daemon, suppress(KeyboardInterrupt):
        (base / "whole").mkdir()
        afters = _afters(daemon, base / "whole")
        number = 0
        while _met(found) < given.kills:
            number += 1
            (place := base / str(number)).mkdir()
            whole = number % 2 == 0
            became = Round(daemon, place, switch, whole=whole).run(afters)
            found[whole].update(became.items())
            if wrong := {name: what for name, what in became.items() if what not in _RIGHT}:
                print(f"round {number}, {place}: {wrong}", file=sys.stderr)
            elif given.progress:
                print(f"{number} rounds, {_met(found)} commits", file=sys.stderr, flush=True)
            if not wrong:
                remove_directory(0, str(place))  # also where a command has taken modes away
    return _report(found, base)


_RIGHT: Final = ("not met", "as before", "as after")


def _met(found: Mapping[bool, Counter[tuple[str, str]]]) -> int:
    return sum(count for each in found.values() for (_, what), count in each.items() if what != "not met")


def _report(found: Mapping[bool, Counter[tuple[str, str]]], base: Path) -> int:
    kinds = sorted({what for each in found.values() for _, what in each} - {"not met"})
    print(f"{'killed within the commit of':32} {' '.join(f'{kind:>12}' for kind in kinds)}")
    for whole, counts in found.items():
        for name in CASES:
            row = " ".join(f"{counts[name, kind]:12}" for kind in kinds)
            print(f"{'the daemon' if whole else 'its worker':12} {name:19} {row}")
    wrong = sum(count for each in found.values() for (_, what), count in each.items() if what not in _RIGHT)
    problem = ""
    try:
        with open_journal(base / "home" / "journal.db") as journal:
            problem = journal.verify().problem
    except JournalError as error:
        problem = str(error)
    print(f"{_met(found)} commits, {wrong} wrong; the journal: {problem or 'as it was written'}")
    if wrong or problem:
        print(f"everything is in {base}", file=sys.stderr)
        return 1
    remove_directory(0, str(base))
    return 0


if __name__ == "__main__":
    sys.exit(main())
