"""Why a tool call ran, or did not: everything that the journal knows of it, on one screen.

Rule: reading changes nothing, and the account is a pure function of a session's entries.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from supervisor.agent.transcript import shown
from supervisor.errors import ConfigError
from supervisor.facts import CallEnded, CallStarted, Replied, SessionChanged, SessionOpened, TurnStarted
from supervisor.index import session_named, utc
from supervisor.journal import Entry, Journal
from supervisor.render import one_line, visible

_LINES: Final = 8
"""Lines of a call's outcome that are told."""
_LENGTH: Final = 800
"""Characters of them."""
_WIDTH: Final = 400
"""Characters of anything else on the screen."""
_CANDIDATES: Final = 5
"""Sessions that are named when several have the call."""


class Why(msgspec.Struct, frozen=True):
    """What is known of one tool call. Times are UTC, and empty for what did not happen."""

    call: str
    session: str
    profile: str = ""
    model: str = ""
    root: str = ""
    turn: int = 0
    line: str = ""
    """What the person had asked in that turn; empty for a call without a model."""
    asked: str = ""
    """When the model's reply that asks for it was recorded."""
    tool: str = ""
    arguments: str = ""
    """As they were asked for, JSON."""
    effect: bool | None = None
    """Whether it may change anything; None for a call that was never judged, as below."""
    decision: str = ""
    """The policy's: "allow", "ask" or "deny"."""
    reason: str = ""
    approved: bool | None = None
    """What the person said, where one was asked."""
    decided_by: str = ""
    edited: str | None = None
    """The arguments as the person changed them."""
    remark: str = ""
    started: str = ""
    """When it was judged, and answered where a person was asked: then it ran, if it was allowed."""
    ended: str = ""
    outcome: str = ""
    """"ok", or the kind of its error; empty while it has none."""
    seconds: float = 0.0
    content: str = ""
    """The first lines of its result, or the error's message."""


def explain(journal: Journal, call: str, session: str | None = None) -> Why:
    """Return what the journal knows of one tool call.

    Args:
        journal: is only read.
        call: its id, as `strongroom history` shows it.
        session: where it was made, an id or the end of one; needed when several sessions have a call of that id.

    Raises:
        ConfigError: no such call or session, or several.
        JournalError: the journal cannot be read.
    """
    if session is not None:
        entries = session_named(journal, session)
        if not any(_is_about(entry, call) for entry in entries):
            raise ConfigError(f"No call {call!r} in the session {entries[0].session}.")
        return account(entries, call)
    last = {entry.session: entry for entry in journal.mentioning(call) if _is_about(entry, call)}
    if not last:
        raise ConfigError(f"No call {call!r}. `strongroom history SESSION` shows the calls of a session.")
    if len(last) > 1:
        raise ConfigError(_several(call, list(last.values())))
    return account(journal.of_session(next(iter(last))), call)


def account(entries: Sequence[Entry], call: str) -> Why:
    """Fold a session into what is known of one of its calls; of the last, where old sessions used an id twice."""
    using: SessionOpened | SessionChanged | None = None
    line = ""
    known = Why(call, entries[0].session)
    for entry in entries:
        match entry.fact:
            case SessionOpened() | SessionChanged() as fact:
                using = fact
            case TurnStarted() as fact:
                line = fact.text
            case Replied() as fact if block := _asked(fact, call):
                known = _set(known, using, fact.turn, line, block["name"])
                arguments = msgspec.json.encode(block["input"]).decode()
                known = msgspec.structs.replace(known, arguments=arguments, asked=utc(entry.at))
            case CallStarted() as fact if fact.call == call:
                asked = known.asked if known.turn == fact.turn else ""
                known = _set(known, using, fact.turn, line if fact.turn else "", fact.tool)
                known = msgspec.structs.replace(_judged(known, fact), asked=asked, started=utc(entry.at))
            case CallEnded() as fact if fact.call == call:
                known = msgspec.structs.replace(_outcome(known, fact), tool=fact.tool, ended=utc(entry.at))
            case _:
                continue
    return known


def as_text(known: Why) -> str:
    """Return the account for one screen; only what Strongroom says itself stands at the margin."""
    using = f"profile {known.profile}, root {known.root}"
    rows = [("call", f"{known.call} {known.tool}, turn {known.turn} of the session {known.session}"), ("in", using)]
    if known.turn:
        rows += [("line", known.line), ("asked", f"{known.asked} by the model {known.model}")]
    rows.append(("with", known.arguments))
    rows.append(("policy", f"{known.decision}: {known.reason}" if known.decision else "it was not judged"))
    rows += _person(known)
    if known.edited is not None:
        rows.append(("edited", known.edited))
    if known.remark:
        rows.append(("remark", known.remark))
    rows.append(("outcome", _ending(known)))
    lines = [f"{name:8} {one_line(text, _WIDTH)}" for name, text in rows]
    return "\n".join([*lines, *(f"         {line}" for line in visible(known.content).split("\n") if line)])


def _person(known: Why) -> list[tuple[str, str]]:
    if known.approved is None:
        return []
    answer = "yes" if known.approved else "no"
    if known.approved and known.edited is not None:
        answer = "yes, to other arguments"
    if not known.approved and not known.decided_by:
        answer = "nobody said yes"
    by = f" by {known.decided_by}" if known.decided_by else ""
    return [("person", f"{answer}{by}, {known.started}")]


def _ending(known: Why) -> str:
    if not known.ended:
        return "none: it waits, it runs, or nobody saw it end"
    return f"{known.outcome}, {known.ended}" + (f", after {known.seconds:.3f} s" if known.seconds else "")


def _is_about(entry: Entry, call: str) -> bool:
    match entry.fact:
        case CallStarted(call=found) | CallEnded(call=found):
            return found == call
        case Replied() as fact:
            return _asked(fact, call) is not None
        case _:
            return False


def _asked(fact: Replied, call: str) -> dict[str, Any] | None:
    """Return the block of a reply that asks for the call."""
    return next((block for block in fact.content if block["type"] == "tool_use" and block["id"] == call), None)


def _several(call: str, last: Sequence[Entry]) -> str:
    """Say which sessions have a call of that id; `last` is the last that was heard of it in each."""
    newest = sorted(last, key=lambda entry: entry.seq, reverse=True)
    named = ", ".join(f"{entry.session} ({utc(entry.at)})" for entry in newest[:_CANDIDATES])
    more = f" and {len(newest) - _CANDIDATES} older" if len(newest) > _CANDIDATES else ""
    return f"{len(newest)} sessions have a call {call!r}: {named}{more}. Choose one with --session."


def _set(known: Why, using: SessionOpened | SessionChanged | None, turn: int, line: str, tool: str) -> Why:
    """Return a new account of the call that begins here."""
    known = Why(known.call, known.session, turn=turn, line=line, tool=tool)
    if using is None:
        return known
    root = using.context.working_directory
    return msgspec.structs.replace(known, profile=using.profile, model=using.model, root=root)


def _judged(known: Why, fact: CallStarted) -> Why:
    return msgspec.structs.replace(
        known,
        arguments=fact.arguments,
        effect=fact.effect,
        decision=fact.decision,
        reason=fact.reason,
        approved=fact.approved,
        decided_by=fact.decided_by,
        edited=fact.edited,
        remark=fact.remark,
    )


def _outcome(known: Why, fact: CallEnded) -> Why:
    text = shown(fact) if fact.ok else fact.content
    content = "\n".join(text[:_LENGTH].split("\n")[:_LINES])
    if len(content) < len(text.rstrip("\n")):
        content += "..."
    outcome = "ok" if fact.ok else str(fact.kind)
    return msgspec.structs.replace(known, outcome=outcome, seconds=fact.seconds, content=content)
