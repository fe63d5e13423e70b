"""The plan of a rewinding: the changes that are taken back so that files are as at the end of a turn.

Rule: pure. All that a session has committed since then is taken back in the reverse order, undos as well: so it does
not matter what was undone in between. What cannot be taken back is said, and is no reason to keep the rest.
"""

from collections.abc import Callable, Sequence

import msgspec

from supervisor.display.command_text import title_of
from supervisor.errors import ConfigError
from supervisor.journal.facts import SessionOpened, effective
from supervisor.journal.journal import JournalEntry
from supervisor.journal.lineage import turn_line
from supervisor.undo.undo_plan import CommittedCall, SessionChanges, lost_pack


class Remaining(msgspec.Struct, frozen=True):
    """A call whose effects stay, all or some of them."""

    call: str
    title: str
    why: str
    """A clause."""


class RewindPlan(msgspec.Struct, frozen=True):
    """What is taken back."""

    turn: int
    """At whose end the conversation stands then."""
    turns: tuple[int, ...]
    """Those that stand no more."""
    again: tuple[int, ...]
    """Those that stand again."""
    packs: tuple[str, ...]
    """Of the calls since, the last first."""
    undoes: tuple[str, ...]
    """The calls that count as taken back by it, the last first."""
    remaining: tuple[Remaining, ...]


def rewind_plan(
    inherited: Sequence[JournalEntry], own: Sequence[JournalEntry], turn: int, holds: Callable[[str], bool]
) -> RewindPlan:
    """Return how to go back to the end of a turn.

    Args:
        inherited: what the session begins with.
        own: its entries.
        turn: its number; 0 is before the first.
        holds: says whether a pack is still there.

    Raises:
        ConfigError: there is no such turn, it has not ended, or it is one of the session that this was forked from.
    """
    story = [*inherited, *own]
    line, session = turn_line(story), own[0].session
    row = line.end_of(turn, session)
    fork = next((entry.fact.fork for entry in own if isinstance(entry.fact, SessionOpened)), None)
    if fork is not None and row < fork.row:
        raise ConfigError(
            f"Turn {turn} is one of {fork.session}, from which {session} was forked at the end of turn {fork.turn}: no "
            f"file goes back further than that here. Use: strongroom fork {fork.session}@{turn}"
        )
    cut = [entry for entry in story if entry.seq <= row]
    then = turn_line(cut).turns
    changes = SessionChanges(own)
    since = _since(changes, row)
    packs, remaining = list[str](), list[Remaining]()
    for call in since:
        why = _problem(call, changes.calls[call], changes.root, holds)
        packs += [] if why else [changes.calls[call].decided.kept]
        if stays := "; ".join(filter(None, (why, _remains(changes.calls[call])))):
            remaining.append(Remaining(call, _title(call, changes.calls[call]), stays))
    return RewindPlan(
        turn,
        tuple(each for each in line.turns if each not in then),
        tuple(each for each in then if each not in line.turns),
        tuple(packs),
        tuple(_taken_back(changes, since)),
        tuple(remaining),
    )


def _since(changes: SessionChanges, row: int) -> list[str]:
    """Return every call that has changed something after a row, whatever became of it, the last first."""
    rows = {call: each.entry.seq for call, each in changes.calls.items() if not each.untouched}
    return sorted((call for call in rows if rows[call] > row), key=rows.__getitem__, reverse=True)


def _taken_back(changes: SessionChanges, since: Sequence[str]) -> list[str]:
    """Return the calls that count as taken back where all of these are, the last first.

    One that was undone since is none of them, nor is its undo, unless that was about what is older.
    """
    found = list[str]()
    for call in since:
        by, targets = changes.undone.get(call, ""), changes.calls[call].took_back
        if by in found if by else not targets or not set(targets) <= set(since):
            found.append(call)
    return (
        found or [call for call in since if call in changes.undone][:1]
    )  # each has cancelled another: nothing changes


def _problem(call: str, each: CommittedCall, root: str, holds: Callable[[str], bool]) -> str:
    """Say why a call cannot be taken back, a clause; or nothing."""
    decided = each.decided
    problems = (
        (decided.unconfined, "it ran outside of the sandbox: what it changed is not known"),
        (decided.effects is None, "it ran without a rehearsal: what it changed is not known"),
        (each.root != root, f"it changed {each.root}, and the session is in {root} now"),
        (not decided.kept, "nothing was kept of what it replaced"),
    )
    return next((words for so, words in problems if so), "") or lost_pack(call, decided.kept, holds)


def _remains(each: CommittedCall) -> str:
    """Return what of a call cannot be taken back in any case: a clause, or nothing."""
    sent = "what it has sent over the network is sent" if each.decided.network else ""
    return "; ".join(filter(None, (sent, each.decided.cannot_undo)))


def _title(call: str, each: CommittedCall) -> str:
    return title_of(each.started.tool, effective(each.started)) if each.started is not None else call
