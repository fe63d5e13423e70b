"""The check at the end of a soak: a fold over the journal, compared with what is there.

Rule: pure. What must be in the root is said by the facts alone: what ended well happened once, what has an unknown
outcome at most once, all else not at all. A call that is begun anew after its commit was decided stands as if that had
not been: no worker had learned of it, so the call has to find the root as it did before. What a client was told must
stand in the journal as it was told, and within the life of the daemon that told it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from scripts.soaking.work import MARKER
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
    effective,
)
from supervisor.journal.journal import JournalEntry

_UNTOUCHED: Final = frozenset(
    {
        *("conflict", "cancelled", "worker_crashed", "worker_unavailable", "denied"),
        *("invalid_arguments", "unknown_tool", "command_not_allowed", "not_found", "no_match"),
    }
)
"""Kinds of a committed call's failure after which nothing has changed."""

_SUCCEEDED: Final = re.compile(r'"exit_code": ?0[,}]')

_CUT_OFF: Final = "none: a client's own, cut off by a kill"
"""The end of a single call that has none: it is not lost, for whoever waited for it knows that the daemon has gone."""

What = Literal["lost", "duplicated", "uncalled-for", "history"]


class Problem(NamedTuple):
    """Something that is not as it must be."""

    what: What
    text: str


class Told(NamedTuple):
    """What a client was told: that a session, a turn or a call is there, or how it has ended."""

    life: int
    session: str
    about: str
    """"session", "turn N" or a call's id."""
    end: str = ""
    """Of a turn its status, of a call "ok" or "failed"; empty where it has only begun."""


@dataclass
class Call:
    """One tool call as the facts tell it."""

    session: str
    id: str
    tool: str = ""
    marker: str = ""
    wanted: int = 0
    """How often the model has asked for it, or a client for a single call."""
    single: bool = False
    """No model waits for its outcome: where the daemon is killed, it has none."""
    rehearsed: bool = False
    arguments: str = ""
    """Those that ran last."""
    committed: int = 0
    """How often it was, since it was begun anew for the last time."""
    changes: bool = False
    kept: str = ""
    undoes: str = ""
    makes: frozenset[str] = frozenset()
    """The names that its last commit makes."""
    unmade: frozenset[str] = frozenset()
    """Those that a lost commit would have made, and none has since."""
    ends: list[CallEnded] = field(default_factory=list)
    at: float = 0.0
    """When it ended."""

    @property
    def name(self) -> str:
        return f"{self.tool or 'call'} {self.id} of {self.session}"

    @property
    def ended(self) -> CallEnded | None:
        return self.ends[-1] if self.ends else None


class Ledger:
    """The facts of all sessions, as far as they count here."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], Call] = {}
        self.packs: set[str] = set()
        """Those that a commit has made."""
        self.told: dict[tuple[str, str, str], int] = {}
        """What clients may be told, and the row that says it."""
        self.open_turns: dict[str, int] = {}

    def add(self, entry: JournalEntry) -> None:
        """Take one fact into account; in their order."""
        session, seq = entry.session, entry.seq
        match entry.fact:
            case SessionOpened():
                self._say(session, "session", "", seq)
            case TurnStarted(turn=turn):
                self._say(session, f"turn {turn}", "", seq)
                self.open_turns[session] = turn
            case TurnEnded(turn=turn, status=status):
                self._say(session, f"turn {turn}", status, seq)
                self.open_turns.pop(session, None)
            case Replied(content=content):
                for block in content:
                    if block["type"] == "tool_use":
                        self._call(session, block["id"]).wanted += 1
            case CallStarted() | CallDecided() | CallEnded() as fact:
                self._follow(self._call(session, fact.call), fact, entry)
            case _:
                pass

    def may_have(self, pack: str) -> bool:
        """Say whether a pack may be there: a commit has made it, or a kill cut its single call off before one.

        Nobody begins such a call anew, and what was kept for it goes when it is too old.
        """
        session, _, rest = pack.partition(".")
        call = self.calls.get((session, rest.partition(".")[0]))
        return pack in self.packs or (call is not None and call.single and not call.ends and not call.committed)

    def _follow(self, call: Call, fact: CallStarted | CallDecided | CallEnded, entry: JournalEntry) -> None:
        match fact:
            case CallStarted():
                if fact.again:
                    self._lose(call, effective(fact))
                call.tool, call.arguments = fact.tool, effective(fact)
                found = MARKER.search(effective(fact))
                call.marker = found[0] if found else ""
                call.single, call.rehearsed = fact.turn == 0, fact.rehearsed
                call.wanted += call.single and not fact.again
            case CallDecided():
                call.undoes = fact.undoes
                if fact.committed:
                    call.committed += 1
                    call.changes = fact.effects is None or bool(fact.effects.totals)
                    changes = fact.effects.changes if fact.effects is not None else ()
                    call.makes = frozenset(each.path for each in changes if each.what == "added")
                    call.unmade -= call.makes
                    call.kept = fact.kept
                if fact.kept:
                    self.packs.add(fact.kept)
            case CallEnded():
                call.ends.append(fact)
                call.at = entry.at
                self._say(entry.session, fact.call, "ok" if fact.ok else "failed", entry.seq)

    def _lose(self, call: Call, arguments: str) -> None:
        """Forget what was decided about a call that is begun anew: its worker had ended before it learned of it."""
        if not call.committed:
            return
        self.packs.discard(call.kept)
        call.unmade = call.unmade | call.makes if arguments == call.arguments else frozenset()
        call.committed, call.changes, call.undoes, call.kept, call.makes = 0, False, "", "", frozenset()

    def problems(self, seen: Mapping[str, int], told: Iterable[Told], lives: Mapping[int, int]) -> Iterator[Problem]:
        """Yield what is wrong.

        Args:
            seen: how often each marker is in the roots.
            told: what clients were told.
            lives: of each life of the daemon the last row of the journal when it had ended.
        """
        for session, turn in self.open_turns.items():
            yield Problem("lost", f"turn {turn} of {session} has no end")
        yield from self._calls()
        yield from self._effects(seen)
        for each in sorted(set(told)):
            row = self.told.get((each.session, each.about, each.end))
            if row is None or row > lives.get(each.life, row):
                yield Problem("lost", f"a client was told of {each.about} {each.end} in {each.session}: not recorded")

    def _calls(self) -> Iterator[Problem]:
        for call in self.calls.values():
            if not call.ends and not call.single:
                yield Problem("lost", f"{call.name} has no outcome")
            if len(call.ends) > max(1, call.wanted):
                yield Problem("duplicated", f"{call.name} has {len(call.ends)} outcomes")
            if call.wanted != 1:
                yield Problem("history", f"{call.name} was asked for {call.wanted} times")
            if call.committed > 1:
                yield Problem("duplicated", f"{call.name} was committed {call.committed} times")
            if call.unmade and call.ended and call.ended.ok:
                there = ", ".join(sorted(call.unmade))
                yield Problem("duplicated", f"{call.name} was begun anew after a commit that had made {there}")
            if call.rehearsed and call.ended and call.ended.kind == "outcome_unknown" and not call.committed:
                yield Problem("history", f"{call.name} is unknown, and was never committed")

    def _effects(self, seen: Mapping[str, int]) -> Iterator[Problem]:
        undone = self._undone()
        marked = {call.marker: call for call in self.calls.values() if call.marker}
        for marker, call in marked.items():
            least, most = _expected(call, undone.get((call.session, call.id)))
            count, how = seen.get(marker, 0), _outcome(call)
            if count < least:
                yield Problem("lost", f"{call.name} ({marker}, {how}) is not in the root")
            elif count > max(1, most):
                yield Problem("duplicated", f"{call.name} ({marker}, {how}) is in the root {count} times")
            elif count > most:
                yield Problem("uncalled-for", f"{call.name} ({marker}, {how}) is in the root")
        for marker in seen.keys() - marked.keys():
            yield Problem("uncalled-for", f"{marker} is in the root, and no call is recorded that has put it there")

    def _undone(self) -> dict[tuple[str, str], bool]:
        """Return the calls that were taken back: True for certain, False perhaps."""
        found: dict[tuple[str, str], bool] = {}
        for call in self.calls.values():
            if not call.undoes:
                continue
            at, ended = (call.session, call.undoes), call.ended
            if ended is not None and ended.ok:
                found[at] = True
            elif call.committed and (ended is None or ended.kind not in _UNTOUCHED):
                found.setdefault(at, False)
        return found

    def _call(self, session: str, call: str) -> Call:
        return self.calls.setdefault((session, call), Call(session, call))

    def _say(self, session: str, about: str, end: str, seq: int) -> None:
        self.told.setdefault((session, about, end), seq)


def outcomes(calls: Iterable[Call]) -> Counter[str]:
    """Count how calls have ended."""
    return Counter(_CUT_OFF if call.single and call.ended is None else _outcome(call) for call in calls)


def seconds(calls: Iterable[Call], tools: Sequence[str], spans: Sequence[tuple[float, float]]) -> list[float]:
    """Return how long calls of some tools took that ended well within spans of time."""
    return [
        call.ended.seconds
        for call in calls
        if call.ended is not None
        and call.ended.ok
        and call.tool in tools
        and any(begin <= call.at <= end for begin, end in spans)
    ]


def facts_of(entries: Iterable[JournalEntry]) -> list[Fact]:
    """Return the facts of entries."""
    return [entry.fact for entry in entries]


def _outcome(call: Call) -> str:
    if call.ended is None:
        return "no outcome"
    return "ok" if call.ended.ok else str(call.ended.kind)


def _expected(call: Call, undone: bool | None) -> tuple[int, int]:
    """Return how often a call's marker must, and may, be in the root."""
    ended = call.ended
    if undone or ended is None:
        return 0, 0 if undone else 1
    if ended.ok and not call.committed:
        return (0, 0) if _did_nothing(ended) else (1, 1)
    if not call.committed or (not ended.ok and ended.kind in _UNTOUCHED):
        return 0, 0
    if ended.ok and undone is None and call.changes:
        return 1, 1
    return 0, 1


def _did_nothing(ended: CallEnded) -> bool:
    """Say whether it is a command that has failed."""
    return ended.tool == "exec_shell" and not _SUCCEEDED.search(ended.content)
