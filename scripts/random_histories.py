"""Random histories of changes, undos and rewindings with a person's edits in between, by the engine that restores.

Rule: a file that a person was the last to write is as they left it, after every rewinding and undo. What calls
alone have changed since a turn is as at its end. A name has never a third state: it is as it was, or as the first call
since then found it; the former, if others have changed it in between. The undo of a rewinding brings all of it back.
The turns that stand are those of a simple list.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.categories.restore import UndoConfig
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Rewound,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from supervisor.journal.journal import JournalEntry
from supervisor.journal.lineage import turn_line
from supervisor.undo.packs import PackStore
from supervisor.undo.rewind_plan import rewind_plan
from supervisor.undo.undo_plan import SessionChanges
from workers.changes.effects import NodeState
from workers.errors import ToolError
from workers.restore.restorer import Restorer
from workers.tool import Proposal, Replaced
from workers.tree.root import Root
from workers.wire.messages import Context
from workers.wire.pack_format import PackedContent, PackedName, encoded

NAMES: Final = ("a", "b", "d", "d/x", "d/y", "e", "e/f", "e/f/z")
"""The names of a tree: each may be a file, a directory, or nothing."""
_STEPS: Final = 14
_EACH: Final = 2**20
_COMES_BACK: Final = 0.4
_GOES: Final = 0.5
"""How often a rewinding is undone at once, and a directory is made a file or removed."""

State = tuple[str, bytes, int] | None
"""What a name is: its kind, its content and its mode; None where there is nothing."""


class _Commit(NamedTuple):
    """A call that was committed: its row and its pack, and what it found, by path."""

    row: int
    call: str
    pack: str
    found: dict[str, State]
    made: dict[str, State]
    """What it has left, by path."""

    def follows(self, other: "_Commit", path: str) -> bool:
        """Say whether it found a path as another had left it."""
        return self.found[path] == other.made[path]


class History:
    """One history, in a directory of its own.

    Args:
        base: the directory.
        chance: says what happens.
    """

    def __init__(self, base: Path, chance: random.Random) -> None:
        self._chance = chance
        self.root = base / "root"
        self.root.mkdir()
        self._store = PackStore(base / "kept", UndoConfig())
        (base / "kept").mkdir(mode=0o700)
        (base / "scratch").mkdir(mode=0o700)
        self._entries: list[JournalEntry] = []
        self._commits: list[_Commit] = []
        self._persons: set[str] = set()
        """Names that the person was the last to change."""
        self._edited: list[tuple[int, str]] = []
        """The rows after which they did so."""
        self._count = 0
        self._trees: dict[int, tuple[int, dict[str, State]]] = {}
        """The row and the tree at the end of each turn."""
        self._lines: dict[int, tuple[int, ...]] = {0: ()}
        self._line: tuple[int, ...] = ()
        self._undoable: dict[int, set[str]] = {0: set()}
        """The calls that could be undone at the end of each turn."""
        self._said = 0
        """How often a turn began, or a rewinding took place."""
        self._rewound: dict[str, tuple[int, tuple[int, ...]]] = {}
        """What `_said` was after a rewinding, and the line before it, by its call."""
        self._places = [
            os.open(each, os.O_PATH | os.O_DIRECTORY) for each in (self.root, base / "kept", base / "scratch")
        ]
        self._fd = self._places[0]
        self._restorer = Restorer(self._places[1], self._places[2], self._places[2])
        self._record(SessionOpened("p", "m", Context(str(self.root)), (), "acp", "1"))
        self._trees[0] = 1, self.tree()

    def close(self) -> None:
        """Let go of the directories."""
        for each in self._places:
            os.close(each)

    def run(self) -> int:
        """Let it happen; return how many rewindings there were."""
        rewound = 0
        for _ in range(self._chance.randint(4, _STEPS)):
            match self._chance.choice(("turn", "turn", "turn", "person", "person", "undo", "rewind", "rewind")):
                case "turn":
                    self._turn()
                case "person":
                    self._person()
                case "undo":
                    undone = SessionChanges(self._entries).undone
                    if known := [each for each in self._commits if each.call not in undone]:
                        self._undo(self._chance.choice(known[-3:]))
                case "rewind":
                    rewound += self._rewind(self._chance.choice(list(self._trees)))
        return rewound

    # --- what is there ------------------------------------------------------------------------------------------------

    def tree(self) -> dict[str, State]:
        """Return what each name is now."""
        return {path: self._state(path) for path in NAMES}

    def _state(self, path: str) -> State:
        place = self.root / path
        if place.is_symlink() or not place.exists():
            return None
        mode = place.stat().st_mode & 0o777
        return ("dir", b"", 0) if place.is_dir() else ("file", place.read_bytes(), mode)

    def _record(self, *facts: Fact) -> int:
        for fact in facts:
            row = len(self._entries) + 1
            self._entries.append(JournalEntry(row, "s", float(row), fact))
        return len(self._entries)

    # --- what happens -------------------------------------------------------------------------------------------------

    def _wanted(self, by: str) -> dict[str, State]:
        """Return other states for some names, which fit together: a name in a directory needs that."""
        wanted: dict[str, State] = {}
        tree = self.tree()
        for path in self._chance.sample(NAMES, self._chance.randint(1, 3)):
            above = path.rpartition("/")[0]
            if above and (wanted.get(above, tree[above]) or ("",))[0] != "dir":
                continue
            self._count += 1
            kind = self._chance.choice(("file", "file", "file", "dir", "gone"))
            has = (wanted.get(path, tree[path]) or ("",))[0]
            if has == "dir" and (kind == "dir" or self._chance.random() < 0.5):
                continue
            content = f"{by}{self._count}\n".encode() * self._chance.randint(1, 40)
            mode = self._chance.choice((0o644, 0o600, 0o755))
            wanted |= {each: None for each in NAMES if each.startswith(f"{path}/") and has == "dir"}
            wanted[path] = {"file": ("file", content, mode), "dir": ("dir", b"", 0), "gone": None}[kind]
        return {path: state for path, state in wanted.items() if state != tree[path]}

    def _person(self) -> None:
        """Let the person write, make and delete."""
        wanted = self._wanted("P")
        for path in sorted(wanted, reverse=True):
            place = self.root / path
            if place.is_dir() and (wanted[path] or ("",))[0] != "dir":
                shutil.rmtree(place)
            elif place.exists() and wanted[path] is None:
                place.unlink()
        for path in sorted(wanted):
            state, place = wanted[path], self.root / path
            if state is None or not place.parent.is_dir():
                continue
            if state[0] == "dir":
                place.unlink(missing_ok=True)
                place.mkdir(exist_ok=True)
            else:
                place.write_bytes(state[1])
                place.chmod(state[2])
        for path in wanted:
            self._persons.add(path)
            self._edited.append((len(self._entries), path))

    def _turn(self) -> None:
        number = max(self._trees) + 1
        self._record(TurnStarted(number, "go"))
        self._said += 1
        for _ in range(self._chance.randint(0, 2)):
            self._call(number)
        if self._chance.random() < 0.2:
            self._person()
        self._line = (*self._line, number)
        self._trees[number] = self._record(TurnEnded(number, "ok", "done")), self.tree()
        self._lines[number] = self._line
        self._undoable[number] = self._stands()

    def _call(self, turn: int) -> None:
        """Let a call change the tree: as if a pack said that this is how it was."""
        if wanted := self._wanted("C"):
            proposal = self._restorer.undo(Root(self._fd, 0o022), self._forged(wanted), force=True)
            if isinstance(proposal, Proposal):
                self._commit(proposal, turn, "write_file")

    def _forged(self, wanted: dict[str, State]) -> str:
        with self._store.begin("s", "forged") as pack:
            for path in sorted(wanted):
                now, state = self._state(path), wanted[path]
                after = (
                    NodeState("file", 0o644) if now is None else NodeState("dir" if now[0] == "dir" else "file", 0o644)
                )
                before = None
                if state is not None and state[0] == "dir":
                    before = NodeState("dir", 0o755)
                elif state is not None:
                    before = NodeState("file", state[2], len(state[1]), time.time_ns())
                kept = before is not None and before.kind == "file"
                pack.append(encoded(PackedName(path, before, after if before is None or now else None, kept=kept)))
                if kept and state is not None:
                    pack.append(encoded(PackedContent(state[1])))
            return pack.finish()

    def _commit(
        self, proposal: Proposal, turn: int, tool: str, undoes: tuple[str, ...] = (), rewound: int | None = None
    ) -> _Commit:
        call, before = f"c{len(self._entries)}", self.tree()
        with self._store.begin("s", call) as pack:
            for part in proposal.originals(_EACH, _EACH):
                if isinstance(part, Replaced):
                    fields = (
                        part.path,
                        part.before,
                        part.after,
                        part.raw_path,
                        dict(part.attributes),
                        part.kept,
                        part.gist,
                    )
                    pack.append(encoded(PackedName(*fields)))
                else:
                    pack.append(encoded(PackedContent(bytes(part))))
            kept = pack.finish()
        proposal.commit()
        proposal.close()
        changed = {each.path for each in proposal.effects.changes}
        self._persons -= changed
        if rewound is not None:
            self._record(Rewound(rewound, call))
        row = self._record(
            CallStarted(turn, call, tool, "{}", True, "allow", "", rehearsed=True),
            CallDecided(
                turn, call, "allow", "", True, proposal.effects, kept=kept, undoes=next(iter(undoes), ""),
                undoes_also=undoes[1:],
            ),
            CallEnded(turn, call, tool, True, ""),
        )  # fmt: skip
        found, made = ({path: tree[path] for path in changed & tree.keys()} for tree in (before, self.tree()))
        commit = _Commit(row - 1, call, kept, found, made)
        self._commits.append(commit)
        return commit

    def _stands(self) -> set[str]:
        """Return the calls that can be undone."""
        return set(SessionChanges(self._entries).undoable())

    # --- what is proved -----------------------------------------------------------------------------------------------

    def _undo(self, commit: _Commit) -> None:
        """Take one call back, as long as nobody has changed anything of it since; what a person has stays."""
        before = self.tree()
        try:
            proposal = self._restorer.undo(Root(self._fd, 0o022), commit.pack, force=False)
        except ToolError:
            self._check(self.tree() == before, "an undo that was refused has changed something")
            return
        persons = {path: before[path] for path in self._persons if (before[path] or ("",))[0] == "file"}
        if isinstance(proposal, Proposal):
            undo = self._commit(proposal, 0, "undo", (commit.call,))
            said, line = self._rewound.pop(commit.call, (0, ()))
            if said == self._said > 0:
                self._said += 1
                self._rewound[undo.call], self._line = (self._said, self._line), line
        now = self.tree()
        self._check(all(now[path] == state for path, state in persons.items()), "an undo has lost what a person did")
        self._check(turn_line(self._entries).turns == self._line, "other turns stand after an undo")

    def _rewind(self, turn: int) -> int:
        """Go back to the end of a turn, and sometimes come again."""
        row, target = self._trees[turn]
        before, persons = self.tree(), set(self._persons)
        plan = rewind_plan([], self._entries, turn, self._store.holds)
        since = {path: [each for each in self._commits if each.row > row and path in each.found] for path in NAMES}
        made = None
        if plan.packs:
            proposal = self._restorer.rewind(Root(self._fd, 0o022), plan.packs, look=False)
            if isinstance(proposal, Proposal):
                made = self._commit(proposal, 0, "rewind", plan.undoes, turn)
        if made is None:
            self._record(Rewound(turn))
        now = self.tree()
        others = {path for at, path in self._edited if at >= row}
        for path in NAMES:
            beside = any(each == path or each.startswith(f"{path}/") or path.startswith(f"{each}/") for each in others)
            written = path in persons and (before[path] or ("",))[0] == "file"
            self._check(not written or now[path] == before[path], f"{path}: what a person wrote is lost")
            self._check(beside or now[path] == target[path], f"{path}: it is not as at the end of the turn")
            broken = any(not later.follows(earlier, path) for earlier, later in pairwise(since[path]))
            may_be = [before[path], *(each.found[path] for each in since[path][: 0 if broken else 1])]
            third = now[path] in may_be or (now[path] or ("",))[0] == "dir"
            self._check(third, f"{path}: it is something else")
        self._said += 1
        if made is not None:
            self._rewound[made.call] = self._said, self._line
        self._line = self._lines[turn]
        self._check(turn_line(self._entries).turns == self._line, "other turns stand")
        if made is not None:
            self._check(self._stands() == self._undoable[turn], "other calls can be undone than at the end of the turn")
        if made is not None and self._chance.random() < _COMES_BACK:
            self._undo(made)
            self._check(self.tree() == before, "the undo of a rewinding has not brought all back")
            self._persons |= persons
        return 1

    def _check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise AssertionError(otherwise)


@contextmanager
def _directory(base: Path) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(dir=base))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def histories(base: Path, count: int, seed: int) -> int:
    """Let histories happen in a directory; return how many rewindings there were.

    Raises:
        AssertionError: something was lost; it names the history.
    """
    rewound, umask = 0, os.umask(0)
    try:
        for number in range(count):
            with _directory(base) as place:
                history = History(place, random.Random(f"{seed}-{number}"))  # noqa: S311 - to be had again, not secret
                try:
                    rewound += history.run()
                except AssertionError as error:
                    raise AssertionError(f"history {number} of seed {seed}: {error}") from error
                finally:
                    history.close()
    finally:
        os.umask(umask)
    return rewound


def main() -> int:
    """Return 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="scripts/histories", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kills", type=int, metavar="N", help="instead: kill a daemon N times while it rewinds")
    options = parser.parse_args()
    if options.kills is not None:
        from scripts.killed_rewinds import killed_rewinds

        print(killed_rewinds(options.kills, options.seed))
        return 0
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())  # noqa: S108 - it is fast
    began = time.process_time()
    rewound = histories(base, options.count, options.seed)
    seconds = time.process_time() - began
    print(f"{options.count} histories, {rewound} rewindings, nothing lost; {seconds:.0f} s of a processor")
    return 0


if __name__ == "__main__":
    sys.exit(main())
