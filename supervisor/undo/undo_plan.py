"""The undo plan of a session: calls that changed something and are not undone, and what undoing each does.

Rule: pure, a fold over a session's entries. An undo is a call like others: it changes something and can be undone,
which brings back what it took away. Unless an undo is named, it is passed over: a second `undo` takes back the change
before, not the first undo.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, Compacted, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, Rewound, RuleRevoked, SessionDeleted,
ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed, TurnStarted, TurnSuspended, Unreadable.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from supervisor.acp.extensions import Restored, Undone
from supervisor.display.command_text import title_of
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, KeptError
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, SessionChanged, SessionOpened, effective
from supervisor.journal.journal import JournalEntry
from workers.changes.effects import Effects, What
from workers.wire.messages import ErrorKind

TOOL: Final = "undo"
"""The tool of a call that takes back another; no profile has it, so that no model can call it."""
REWIND: Final = "rewind"
"""The same, of all that was changed since a turn."""

Extent = Literal["last", "turn", "session"]
"""How far back: the last change, all of the last turn that changed anything, everything."""

UNTOUCHED: Final = frozenset(
    {
        *("conflict", "cancelled", "worker_crashed", "worker_unavailable"),
        *("invalid_arguments", "unknown_tool", "command_not_allowed", "not_found"),
    }
)
"""Kinds of a committed call's failure after which nothing has changed."""
_TAKEN_BACK: Final = ("disk_full", "permission_denied")
"""The same, but for what could not be taken back: the failure names it, and whoever names the call may undo it."""
_SHOWN: Final = 100
"""Changes of one call that are named."""
_TITLE: Final = 100
_REVERSED: Final[Mapping[What, What]] = MappingProxyType({"added": "deleted", "deleted": "added"})
"""What an undo makes of a change; of any other kind the same."""


class UndoStep(msgspec.Struct, frozen=True):
    """One call to be taken back."""

    call: str
    tool: str
    title: str
    at: float
    """When it was committed, seconds since the epoch."""
    pack: str = ""
    """What its undo is made from."""
    kind: ErrorKind | None = None
    """With `problem`: it cannot be undone."""
    problem: str = ""
    changes: tuple[Restored, ...] = ()
    """What undoing it does, where that is known; `more` names are only counted."""
    more: int = 0
    cannot_undo: str = ""
    """What of it cannot be undone, and why: a clause."""


@dataclass
class CommittedCall:
    """A call that was committed, or an undo that had nothing to restore."""

    entry: JournalEntry
    decided: CallDecided
    started: CallStarted | None
    root: str
    ended: CallEnded | None = None

    def __post_init__(self) -> None:
        self.applied = self.entry.seq
        """The row since which it stands: of its own decision, or of the last undo of its undo."""

    @property
    def untouched(self) -> bool:
        """Whether it has changed nothing."""
        nothing = self.decided.effects is not None and not self.decided.effects.totals
        return nothing or not self.decided.committed or (self.ended is not None and self.ended.kind in UNTOUCHED)

    @property
    def undoes(self) -> tuple[str, ...]:
        """The calls that it was to take back."""
        return (self.decided.undoes, *self.decided.undoes_also) if self.decided.undoes else ()

    @property
    def took_back(self) -> tuple[str, ...]:
        """The calls that it has taken back for certain; one whose end nobody saw may be taken back again."""
        return self.undoes if self.ended is not None and self.ended.ok else ()

    @property
    def changed(self) -> bool:
        """Whether it has changed something, as far as is known."""
        return not self.untouched and (self.ended is None or self.ended.kind not in _TAKEN_BACK)


class SessionChanges:
    """What the calls of one session have changed."""

    def __init__(self, entries: Sequence[JournalEntry]) -> None:
        self._session = entries[0].session if entries else ""
        self.root = ""
        """Where the session is now."""
        self._seen: set[str] = set()
        self.calls: dict[str, CommittedCall] = {}
        """Those that were committed, by their ids."""
        self.undone: dict[str, str] = {}
        """The undo that took a call back, and stands itself, by the call."""
        self._unreadable = 0
        """The last row that cannot be read, or is gone, and may be one of the session."""
        self._fold(entries)
        self._weigh()

    def undone_by(self, call: str) -> str:
        """Return the undo that took a call back, and stands itself; "" for none."""
        return self.undone.get(call, "")

    def undoable(self) -> list[str]:
        """Return the calls that changed something, were not taken back and are no undo themselves, the last first."""
        found = [
            (each.applied, call)
            for call, each in self.calls.items()
            if each.changed and call not in self.undone and not each.decided.undoes
        ]
        return [call for _, call in sorted(found, reverse=True)]

    @property
    def last(self) -> int:
        """The journal's row since which its last change stands that can be taken back; 0 where there is none."""
        return self.calls[undoable[0]].applied if (undoable := self.undoable()) else 0

    def extent(self, extent: Extent) -> list[str]:
        """Return the calls to take back, the last first."""
        undoable = self.undoable()
        if extent == "last":
            return undoable[:1]
        if extent == "turn" and undoable:
            turn = self.calls[undoable[0]].decided.turn
            return [call for call in undoable if self.calls[call].decided.turn == turn] if turn else undoable[:1]
        return undoable

    def step(self, call: str, holds: Callable[[str], bool]) -> UndoStep:
        """Return how to take back a call; `holds` says whether a pack is still there.

        Raises:
            ConfigError: the session has no such call.
        """
        if call not in self._seen:
            raise ConfigError(f"No call {call!r} in the session {self._session}. `strongroom history` shows its calls.")
        found = self.calls.get(call)
        if found is None:
            problem = f"{call} has changed nothing: there is nothing to undo."
            if self._unreadable:
                problem = (
                    f"Nothing says that {call} has changed anything, but row {self._unreadable} of the journal, which "
                    "may have said it, is lost: look at its files."
                )
            return UndoStep(call, "", "", 0.0, kind="invalid_arguments", problem=problem)
        decided, started = found.decided, found.started
        problem = self._problem(call, found, holds)
        changes, more = _listed(decided.effects, lambda what: _REVERSED.get(what, what))
        return UndoStep(
            call,
            started.tool if started else "",
            title_of(started.tool, effective(started)) if started else "",
            found.entry.at,
            decided.kept,
            "invalid_arguments" if problem else None,
            problem,
            changes,
            more,
            decided.cannot_undo,
        )

    def _problem(self, call: str, found: CommittedCall, holds: Callable[[str], bool]) -> str:
        """Say why a call cannot be undone, or nothing."""
        decided, undo = found.decided, self.undone.get(call)
        lost = lost_pack(call, decided.kept, holds)
        unknown = "what it changed is not known, and cannot be undone. Name an earlier call to undo that."
        why = f" ({one_line(decided.unrehearsed, _TITLE)})" if decided.unrehearsed else ""
        rows = (
            (found.untouched, f"{call} has changed nothing: there is nothing to undo."),
            (
                found.entry.damage == "changed",
                f"The record of {call}, row {found.entry.seq} of the journal, is not what was written: see `verify`.",
            ),
            (undo, f"{call} is undone already, by {undo}: undo {undo} to bring it back."),
            (decided.unconfined, f"{call} ran outside of the sandbox: {unknown}"),
            (decided.effects is None, f"{call} ran without a rehearsal{why}: {unknown}"),
            (not decided.kept, f"Nothing was kept of what {call} replaced: total_mb was 0 in [undo]."),
            (bool(lost), lost),
            (
                found.root != self.root,
                f"{call} changed {found.root}, and the session is in {self.root} now: switch to its profile first.",
            ),
        )
        return next((words for so, words in rows if so), "")

    def _fold(self, entries: Sequence[JournalEntry]) -> None:
        started: dict[str, CallStarted] = {}
        for entry in entries:
            if entry.damage in ("unreadable", "unchecked"):
                self._unreadable = entry.seq - (entry.damage == "unchecked")
            match entry.fact:
                case SessionOpened() | SessionChanged() as fact:
                    self.root = fact.context.working_directory
                case CallStarted() as fact:
                    self._seen.add(fact.call)
                    started[fact.call] = fact
                    # what was decided before was lost with its worker; or an old session used an id twice
                    self.calls.pop(fact.call, None)
                case CallDecided() as fact if fact.committed or fact.undoes:
                    self.calls[fact.call] = CommittedCall(entry, fact, started.get(fact.call), self.root)
                case CallEnded(call=call) as fact:
                    self._seen.add(call)
                    if call in self.calls:
                        self.calls[call].ended = fact
                case _:
                    continue

    def _weigh(self) -> None:
        """Find out what stands: the newest first, for each may be taken back by a newer one only."""
        for call, each in sorted(self.calls.items(), key=lambda item: item[1].entry.seq, reverse=True):
            for undoes in each.took_back if call not in self.undone else ():
                self.undone.setdefault(undoes, call)
                undo = self.calls.get(undoes)
                for first in undo.undoes if undo is not None else ():
                    if first in self.calls:  # this undo of an undo has brought it back
                        self.calls[first].applied = max(self.calls[first].applied, each.applied)


def lost_pack(call: str, pack: str, holds: Callable[[str], bool]) -> str:
    """Say why the pack of a call is not available, or nothing."""
    gone = f"What {call} replaced is no longer kept: [undo] total_mb and days say how much is, and for how long."
    try:
        return "" if holds(pack) else gone
    except KeptError as error:
        return f"What {call} replaced cannot be read: {error}"


def undo_plan(
    entries: Sequence[JournalEntry], calls: Sequence[str], extent: Extent, holds: Callable[[str], bool]
) -> list[UndoStep]:
    """Return the calls to take back in their order: those named, else as far as `extent` says; none, if none stands.

    Raises:
        ConfigError: the session has no such call.
    """
    changes = SessionChanges(entries)
    return [changes.step(call, holds) for call in calls or changes.extent(extent)]


def undo_outcome(step: UndoStep, ended: CallEnded | None, decided: CallDecided | None) -> Undone:
    """Return what became of a step; None where it was not even tried."""
    undone = Undone(call=step.call, tool=step.tool, title=step.title, ok=False, kind=step.kind, message=step.problem)
    if ended is None:
        return undone
    undone = msgspec.structs.replace(undone, undo=ended.call, ok=ended.ok, kind=ended.kind, message=ended.content)
    if not ended.ok or decided is None or decided.effects is None:
        return undone
    changes, more = _listed(decided.effects, lambda what: what)
    return msgspec.structs.replace(undone, changes=changes, more=more)


def _listed(effects: Effects | None, becomes: Callable[[What], What]) -> tuple[tuple[Restored, ...], int]:
    """Return changes by name, each as what it `becomes`, and how many more there are."""
    if effects is None:
        return (), 0
    names = tuple(Restored(path=each.path, what=becomes(each.what)) for each in effects.changes[:_SHOWN])
    return names, sum(effects.totals.values()) - len(names)
