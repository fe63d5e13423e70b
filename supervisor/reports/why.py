"""Report on one tool call: why it ran or did not, and all else that the journal knows of it.

Rule: reading changes nothing, and the account is a pure function of a session's entries.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, Compacted, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, ModelSwitched, OptionChosen, ReplyCut, Rewound, RuleRevoked, SessionDeleted, ToolsChanged,
TurnEnded, TurnQuestioned, TurnResumed, TurnSuspended, Unreadable.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from supervisor.agent.blocks import result_text
from supervisor.display.changes import detailed
from supervisor.display.command_output import output_text
from supervisor.display.differences import shown
from supervisor.display.escape import name
from supervisor.display.proposed_effects import presented
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Replied,
    SessionChanged,
    SessionOpened,
    TurnStarted,
)
from supervisor.journal.index import session_named, utc
from supervisor.journal.journal import Journal, JournalEntry
from supervisor.journal.lineage import inherited
from supervisor.journal.suspended import suspended_in
from supervisor.reports.call_record import Judged, Why
from supervisor.reports.prompt_cache import PromptCache
from supervisor.rules.rule_sentence import sentence
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.undo.undo_plan import SessionChanges

_LINES: Final = 8
"""Lines of a call's outcome that are told."""
_LENGTH: Final = 800
"""Characters of them."""
_CANDIDATES: Final = 5
"""Sessions that are named when several have the call."""
_NAMED: Final = 5
"""Names, and attempts, that are told of one rehearsal."""
_SOURCES: Final = 5
"""Sources of what was shown before that are kept."""

_OF_CALL: Final = (
    *("arguments", "effect", "decision", "reason", "approved", "decided_by", "edited", "remark", "flow", "typed_by"),
)
"""What an account has of how a call was judged as a text."""

_LOST: Final = "lost: the worker ended before it was told to commit, so nothing was changed"
"""Said of a decision to commit after which the call was begun anew."""


def explain(
    journal: Journal, call: str, session: str | None = None, holds: Callable[[str], bool] = lambda _pack: True
) -> Why:
    """Return what the journal knows of one tool call.

    Args:
        journal: is only read.
        call: its id, as `strongroom history` shows it.
        session: where it was made, an id or the end of one; needed when several sessions have a call of that id.
        holds: says whether what was kept for undo is still there.

    Raises:
        ConfigError: no such call or session, or several.
        JournalError: the journal cannot be read.
    """
    if session is not None:
        entries = session_named(journal, session)
        if not any(_is_about(entry, call) for entry in entries):
            raise ConfigError(f"No call {call!r} in the session {entries[0].session}.")
        return call_record_of(entries, call, holds, inherited(journal, entries))
    last = {entry.session: entry for entry in journal.mentioning(call) if _is_about(entry, call)}
    if not last:
        raise ConfigError(f"No call {call!r}. `strongroom history SESSION` shows the calls of a session.")
    if len(last) > 1:
        raise ConfigError(_several(call, list(last.values())))
    entries = journal.of_session(next(iter(last)))
    return call_record_of(entries, call, holds, inherited(journal, entries))


def call_record_of(
    entries: Sequence[JournalEntry],
    call: str,
    holds: Callable[[str], bool] = lambda _pack: True,
    before: Sequence[JournalEntry] = (),
) -> Why:
    """Fold a session into what is known of one of its calls; of the last, where old sessions used an id twice.

    `before` are the entries that it begins with, where it was forked.
    """
    using: SessionOpened | SessionChanged | None = None
    line = ""
    known, seen, cache = Why(call, entries[0].session), SeenText(), PromptCache()
    for entry in before:
        cache.apply(entry.fact, entry.at)
    for entry in entries:
        seen.apply(entry.fact)
        cache.apply(entry.fact, entry.at)
        match entry.fact:
            case SessionOpened() | SessionChanged() as fact:
                using = fact
            case TurnStarted() as fact:
                line = fact.text
            case Replied() as fact if block := _request_block(fact, call):
                known = _new_record(known, using, fact.turn, line, block["name"])
                arguments, after = msgspec.json.encode(block["input"]).decode(), tuple(seen.latest(_SOURCES))
                known = msgspec.structs.replace(known, arguments=arguments, asked=utc(entry.at), after=after)
                known = msgspec.structs.replace(known, cache=cache.step)
            case CallStarted(again=True) as fact if fact.call == call:
                known = _judged(msgspec.structs.replace(known, judged=_with_lost_commit(known.judged)), fact)
            case CallStarted() as fact if fact.call == call:
                same = known.turn == fact.turn
                asked, after, cached = (known.asked, known.after, known.cache) if same else ("", (), "")
                known = _new_record(known, using, fact.turn, line if fact.turn else "", fact.tool)
                known = msgspec.structs.replace(_judged(known, fact), asked=asked, after=after, cache=cached)
                known = msgspec.structs.replace(known, started=utc(entry.at))
            case CallDecided() as fact if fact.call == call:
                judged = (*known.judged, _decided(fact, utc(entry.at)))
                known = msgspec.structs.replace(known, judged=judged, undoes=fact.undoes)
            case CallEnded() as fact if fact.call == call:
                known = msgspec.structs.replace(_outcome(known, fact), tool=fact.tool, ended=utc(entry.at))
            case _:
                continue
    known = msgspec.structs.replace(
        known,
        changed=tuple(entry.seq for entry in entries if entry.damage == "changed" and _is_about(entry, call)),
        unreadable=tuple(entry.seq for entry in entries if entry.damage == "unreadable"),
        suspended=suspended.why if (suspended := suspended_in(entries)) and suspended.turn == known.turn else "",
    )
    return _undo(known, SessionChanges(entries), holds) if known.effect else known


def _is_about(entry: JournalEntry, call: str) -> bool:
    match entry.fact:
        case CallStarted(call=found) | CallDecided(call=found) | CallEnded(call=found):
            return found == call
        case Replied() as fact:
            return _request_block(fact, call) is not None
        case _:
            return False


def _request_block(fact: Replied, call: str) -> dict[str, Any] | None:
    """Return the block of a reply that asks for the call."""
    return next((block for block in fact.content if block["type"] == "tool_use" and block["id"] == call), None)


def _several(call: str, last: Sequence[JournalEntry]) -> str:
    """Say which sessions have a call of that id; `last` is the last that was heard of it in each."""
    newest = sorted(last, key=lambda entry: entry.seq, reverse=True)
    named = ", ".join(f"{entry.session} ({utc(entry.at)})" for entry in newest[:_CANDIDATES])
    more = f" and {len(newest) - _CANDIDATES} older" if len(newest) > _CANDIDATES else ""
    return f"{len(newest)} sessions have a call {call!r}: {named}{more}. Choose one with --session."


def _new_record(known: Why, using: SessionOpened | SessionChanged | None, turn: int, line: str, tool: str) -> Why:
    """Return a new account of the call that begins here."""
    known = Why(known.call, known.session, turn=turn, line=line, tool=tool)
    if using is None:
        return known
    root = using.context.working_directory
    return msgspec.structs.replace(known, profile=using.profile, model=using.model, root=root)


def _judged(known: Why, fact: CallStarted) -> Why:
    return msgspec.structs.replace(known, **{name: getattr(fact, name) for name in _OF_CALL})


def _with_lost_commit(judged: tuple[Judged, ...]) -> tuple[Judged, ...]:
    """Return what was decided before a call is begun anew: a commit that a worker has learned of never is."""
    if not judged or not judged[-1].committed:
        return judged
    reason = f"{judged[-1].reason}; {_LOST}" if judged[-1].reason else _LOST
    return (*judged[:-1], msgspec.structs.replace(judged[-1], committed=False, reason=reason))


def _decided(fact: CallDecided, at: str) -> Judged:
    made = sentence(fact.rule) if fact.rule is not None else ""
    judged = msgspec.structs.replace(msgspec.convert(fact, Judged, from_attributes=True), at=at, made=made)
    if fact.effects is None:
        return judged
    effects = presented(fact.effects)
    rest = sum(effects.totals.values()) - _NAMED
    names = tuple(name(each.path) for each in effects.changes[:_NAMED])
    return msgspec.structs.replace(
        judged,
        changes="; ".join(filter(None, (f"git: {effects.git}" * bool(effects.git), detailed(effects)))),
        names=(*names, f"and {rest} more") if rest > 0 else names,
        differences=tuple(shown(effects)),
        refused=tuple(f"{each.kind} {name(each.what)}" for each in effects.refused),
        traffic=effects.traffic,
    )


def _undo(known: Why, changes: SessionChanges, holds: Callable[[str], bool]) -> Why:
    """Return the account with what can be said of taking it back."""
    undone_by = changes.undone_by(known.call)
    if undone_by:
        return msgspec.structs.replace(
            known, undone_by=undone_by, undo=f"undone by {undone_by}; `strongroom undo {undone_by}` brings it back"
        )
    if not any(each.committed for each in known.judged):
        return known
    step = changes.step(known.call, holds)
    without = f"; but {step.cannot_undo}" if step.cannot_undo else ""
    return msgspec.structs.replace(known, undo=step.problem or f"`strongroom undo {known.call}` takes it back{without}")


def _outcome(known: Why, fact: CallEnded) -> Why:
    text = output_text(fact.tool, result_text(fact)) if fact.ok else fact.content
    content = "\n".join(text[:_LENGTH].split("\n")[:_LINES])
    if len(content) < len(text.rstrip("\n")):
        content += "..."
    outcome = "ok" if fact.ok else str(fact.kind)
    return msgspec.structs.replace(known, outcome=outcome, seconds=fact.seconds, content=content)
