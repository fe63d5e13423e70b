"""Reports on sessions: `strongroom sessions`, `history`, `why` and `verify`, read from the journal alone.

Rule: reading changes nothing. Formats are pure functions of a session's entries.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, FaultsAllowed, Unreadable.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from supervisor.agent.blocks import result_text
from supervisor.agent.models.gemini_contents import FORMAT_NAME, contents
from supervisor.agent.models.inline_contents import inlined
from supervisor.agent.models.model import CONTENTS, ModelRequest, message_text
from supervisor.agent.shown_contents import filled
from supervisor.agent.transcript import Transcript
from supervisor.categories.media import MediaConfig
from supervisor.categories.restore import UndoConfig
from supervisor.config.settings import Settings
from supervisor.display.changes import detailed
from supervisor.display.command_output import output_text
from supervisor.display.differences import FOLDED, folded, shown
from supervisor.display.escape import document, name, one_line, visible
from supervisor.display.fragments import ReportPage
from supervisor.display.proposed_effects import presented
from supervisor.errors import ConfigError
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    ContentsRefused,
    Fact,
    ModeChanged,
    ModelRetried,
    ModelSwitched,
    OptionChosen,
    Replied,
    RuleRevoked,
    SessionChanged,
    SessionDeleted,
    SessionOpened,
    ToolsChanged,
    TurnEnded,
    TurnQuestioned,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    effective,
)
from supervisor.journal.index import SessionIndex, Summary, session_named, utc
from supervisor.journal.journal import ChainCheck, JournalEntry, open_journal
from supervisor.reports.call_record import Why
from supervisor.reports.why import explain
from supervisor.tools.content_words import described, refusal_notice
from supervisor.tools.outcomes import availability_notice
from supervisor.undo.packs import PackStore

_WIDTH: Final = 100
_WITHIN: Final = "      "
"""What lines begin with that belong to a line of a call."""
_NARROWEST: Final = 8
"""Columns that they have at least."""
_HEAD: Final = 3
_TAIL: Final = 9
"""Lines of a command's output that are shown: of its beginning, and of its end, where results stand."""
_PLAIN: Final = ReportPage()
TEXT: Final = "text"
"""The format for people."""
_DAMAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "changed": "CHANGED: what follows, row {row} of the journal, is not what was written",
        "unchecked": "the row before {row} is lost, so nobody can say whether what follows was changed",
        "unreadable": "row {row} of the journal cannot be read",
    }
)
_NAMED: Final = 3
"""Names that are told of what a call has changed."""


class SessionLine(msgspec.Struct, frozen=True):
    """One session in a listing."""

    session: str
    opened: str
    profile: str
    model: str
    root: str
    turns: int
    title: str
    state: str
    """"open" while a turn has no end, "suspended" where it goes no further for now, else how the last turn ended."""


def sessions(settings: Settings) -> list[SessionLine]:
    """Return all sessions, oldest first.

    Raises:
        JournalError: the journal cannot be read.
    """
    if not settings.journal.exists():
        return []
    with open_journal(settings.journal) as journal:
        index = SessionIndex(journal)
        index.refresh()
    return [_line(summary) for summary in index if not summary.deleted]


def _line(summary: Summary) -> SessionLine:
    calls = f"{summary.calls} calls: {', '.join(summary.tools)}" if summary.calls else ""
    return SessionLine(
        summary.session,
        utc(summary.opened_at),
        summary.profile,
        summary.model,
        summary.root,
        summary.turns,
        summary.title or one_line(calls, _WIDTH),
        summary.state,
    )


def history(settings: Settings, wanted: str, form: str, page: ReportPage = _PLAIN) -> str:
    """Return a session in one of `FORMATS`, or as text for a page.

    `wanted` is its id, or the end of it where that is unique.

    Raises:
        ConfigError: no such session, or several.
        JournalError: the journal cannot be read.
    """
    if not settings.journal.exists():
        raise ConfigError(f"No session {wanted!r}: there is no journal yet.")
    with open_journal(settings.journal) as journal:
        entries = session_named(journal, wanted)
    if form == TEXT:
        return _as_text(entries, page)
    return FORMATS[form](entries, ContentStore(settings.contents, settings.config.section(MediaConfig)))


def _as_text(entries: Sequence[JournalEntry], page: ReportPage) -> str:
    """Return an account whose lines cannot be mistaken: only what Strongroom says itself stands at the margin."""
    lines: list[str] = []
    running: dict[str, list[str]] = {}
    for entry in entries:
        fact = entry.fact
        lines += [f"({_DAMAGES[entry.damage].format(row=entry.seq)})"] if entry.damage else []
        match fact:
            case SessionOpened():
                lines.append(f"session {entries[0].session}, {_profile_and_model(fact)}")
                lines.append(f"root {one_line(fact.context.working_directory, 4096)}")
            case TurnStarted():
                lines += ["", *_prefixed("> ", "\n".join(f"[{described(each)}]" for each in fact.contents))]
                lines += _prefixed("> ", fact.text)
            case Replied():
                lines += _prefixed("  ", message_text(fact.content).strip())
            case CallStarted():
                running[fact.call] = _call_lines(fact, running.get(fact.call, []))
            case CallDecided():
                running.setdefault(fact.call, []).extend((*_decision_lines(fact), *_differences(fact, page)))
            case CallEnded():
                lines += running.pop(fact.call, [f"* {one_line(fact.tool, _WIDTH)} ({one_line(fact.call, _WIDTH)})"])
                lines += _outcome_lines(fact, page)
            case _:
                lines += [f"({note})" for note in _notes(fact)]
    for call in running.values():
        lines += [*call, "    (no outcome: it is still running, or its end was not recorded)"]
    if Transcript(entry.fact for entry in entries).open_turn is not None:
        lines.append("(open: this turn has no end)")
    return "\n".join(lines)


def _notes(fact: Fact) -> list[str]:
    """Return what is said of a fact that is neither a line, a reply nor a call."""
    match fact:
        case SessionChanged():
            root = one_line(fact.context.working_directory, 4096)
            return [f"from here on {_profile_and_model(fact)}", f"and the root {root}"]
        case SessionDeleted():
            return ["deleted: no listing shows this session"]
        case TurnResumed():
            return [f"resumed by {one_line(fact.by, _WIDTH)}" if fact.by else "interrupted, and resumed"]
        case (
            ToolsChanged()
            | ContentsRefused()
            | ModeChanged()
            | OptionChosen()
            | ModelRetried()
            | RuleRevoked()
            | TurnQuestioned()
            | TurnSuspended()
            | ModelSwitched()
        ):
            return [_besides(fact)]
        case TurnEnded() if fact.status != "ok":
            why = f", {fact.kind}: {one_line(fact.message, _WIDTH)}" if fact.message else ""
            return [f"turn ended: {fact.status}{why}"]
        case _:
            return []


def _without_reply(fact: TurnSuspended | ModelSwitched) -> str:
    if isinstance(fact, ModelSwitched):
        asked = "was not asked" if fact.approved is False else "is asked"
        return one_line(f"{fact.before} gave no reply, {fact.model} {asked}: {fact.because}", _WIDTH * 4)
    until = f" until {utc(fact.until)}" if fact.until else ""
    return f"suspended{until}: {one_line(fact.why, _WIDTH * 4)}"


def _besides(
    fact: ToolsChanged
    | ContentsRefused
    | ModeChanged
    | OptionChosen
    | ModelRetried
    | RuleRevoked
    | TurnQuestioned
    | TurnSuspended
    | ModelSwitched,
) -> str:
    if isinstance(fact, TurnSuspended | ModelSwitched):
        return _without_reply(fact)
    if isinstance(fact, TurnQuestioned):
        chose = "let the turn go on" if fact.approved else "stopped the turn"
        return one_line(f"{fact.decided_by or 'the person'} {chose}, after {fact.rejected} rejections", _WIDTH * 2)
    if isinstance(fact, RuleRevoked):
        return one_line(f"the rule {fact.rule}, made in {fact.call}, was revoked by {fact.by}", _WIDTH * 2)
    if isinstance(fact, ModeChanged | OptionChosen):
        name, value = ("mode", fact.mode) if isinstance(fact, ModeChanged) else (fact.option, fact.value or "default")
        return one_line(f"from here on the {name} {value}", _WIDTH)
    if isinstance(fact, ToolsChanged | ContentsRefused):
        said = availability_notice(fact) if isinstance(fact, ToolsChanged) else refusal_notice(fact)
        return one_line(said, _WIDTH * 8)
    return f"asked the model again after {fact.kind}: {one_line(fact.message, _WIDTH)}"


def _profile_and_model(fact: SessionOpened | SessionChanged) -> str:
    return one_line(f"profile {fact.profile}, model {fact.model or 'none'}", _WIDTH * 2)


def _call_lines(fact: CallStarted, before: list[str]) -> list[str]:
    """Return what is shown of a call before its outcome: what was asked, and a person's part in it."""
    if fact.again:
        return [*before, f"    again, with {one_line(effective(fact), _WIDTH)}"]
    asked = f"{one_line(fact.tool, _WIDTH)} {one_line(fact.arguments, _WIDTH)}"
    lines = [f"* {asked} ({one_line(fact.call, _WIDTH)})"]
    who = one_line(fact.decided_by, _WIDTH) or "the person"
    if fact.edited is not None:
        lines.append(f"    {who} changed it to: {one_line(fact.edited, _WIDTH)}")
    if fact.remark:
        lines.append(f"    {who} said: {one_line(fact.remark, _WIDTH)}")
    return lines


def _decision_lines(fact: CallDecided) -> list[str]:
    """Return what is shown of a rehearsal, and of what was decided about it."""
    who = one_line(fact.decided_by, _WIDTH)
    by = f" by {who}" if who else ""
    parts = [("committed" if fact.committed else "not committed") + by if fact.committed or not fact.undoes else ""]
    parts += [_changes(fact), one_line(fact.cannot_undo, _WIDTH) if fact.committed else ""]
    if fact.network and not fact.committed and (fact.approved or fact.effects is None):
        parts = [f"allowed to use the network{by}"]
    lines = [f"    {', '.join(filter(None, parts))}"]
    return [*lines, f"    {who or 'the person'} said: {one_line(fact.remark, _WIDTH)}"] if fact.remark else lines


def _differences(fact: CallDecided, page: ReportPage) -> Iterator[str]:
    """Yield the beginning of what a commit has changed in texts."""
    if fact.committed and fact.effects is not None:
        more = f"; `strongroom why {one_line(fact.call, _WIDTH)}` shows all"
        columns = max(_NARROWEST, page.columns - len(_WITHIN)) if page.columns else 0
        found = folded(shown(presented(fact.effects)), columns, FOLDED, more, colour=page.toned)
        yield from page.rows(found, _WITHIN)


def _outcome_lines(fact: CallEnded, page: ReportPage) -> list[str]:
    """Return how a call ended; of a command the two ends of what it printed."""
    mark = f"    {'ok' if fact.ok else fact.kind}"
    result = result_text(fact) if fact.ok else fact.content
    said = output_text(fact.tool, result)
    if said == result or "\n" not in said.strip():
        return [f"{mark}: {one_line(said, _WIDTH)}"]
    lines = visible(said).strip("\n").split("\n")
    left = len(lines) - _HEAD - _TAIL
    if left > 1:
        lines[_HEAD:-_TAIL] = [f"... {left} more lines; `--format json` has all"]
    return [mark, *page.rows(([("", one_line(line, _WIDTH))] for line in lines), _WITHIN)]


def _changes(fact: CallDecided) -> str:
    back = f"takes back {one_line(fact.undoes, _WIDTH)}; " if fact.undoes else ""
    if fact.effects is None:
        return f"{back}{'without a rehearsal' if fact.committed or not back else 'nothing was to be changed'}"
    names = ", ".join(name(each.path) for each in fact.effects.changes[:_NAMED])
    return one_line(f"{back}{detailed(presented(fact.effects))}: {names}", _WIDTH)


def _prefixed(mark: str, text: str) -> list[str]:
    return [mark + line for line in visible(text).split("\n")] if text else []


def _messages(entries: Sequence[JournalEntry], store: ContentStore, sees: frozenset[str]) -> ModelRequest:
    """Return the messages as an API takes them, for a model that sees so much: what was left open is shown closed."""
    transcript = Transcript(entry.fact for entry in entries)
    for fact in transcript.closing_facts():
        transcript.apply(fact)
    request = ModelRequest("", (), transcript.messages, transcript.step, origins=transcript.origins)
    refused = transcript.refused_contents.get(_model(entries), frozenset())
    return filled(request, transcript, store, sees, refused)


def _model(entries: Sequence[JournalEntry]) -> str:
    """Return the session's model; "" where it has none."""
    opened = [entry.fact for entry in entries if isinstance(entry.fact, SessionOpened | SessionChanged)]
    return (opened[-1].model or "") if opened else ""


def _as_json(entries: Sequence[JournalEntry], _store: ContentStore) -> str:
    rows = [
        {"seq": entry.seq, "at": entry.at, "session": entry.session, "fact": entry.fact}
        | ({"damage": entry.damage} if entry.damage else {})
        for entry in entries
    ]
    return document(rows)


def _as_anthropic(entries: Sequence[JournalEntry], store: ContentStore) -> str:
    """Return the messages as they would be sent, with the images and documents that are kept."""
    request = _messages(entries, store, CONTENTS)
    return document(inlined(request, request.messages))


def _as_gemini(entries: Sequence[JournalEntry], store: ContentStore) -> str:
    """Return what Gemini would be sent as `contents`; a model that is none stands for the newest."""
    request = _messages(entries, store, CONTENTS)
    writers = [origin.provider for origin in request.origins.values() if origin.format == FORMAT_NAME]
    model = _model(entries)
    taker = model if FORMAT_NAME in model else FORMAT_NAME
    return document(contents(request, writers[-1] if writers else FORMAT_NAME, taker))


FORMATS: Final[Mapping[str, Callable[[Sequence[JournalEntry], ContentStore], str]]] = MappingProxyType(
    {"json": _as_json, "anthropic": _as_anthropic, "gemini": _as_gemini}
)


def why(settings: Settings, call: str, session: str | None = None) -> Why:
    """Return what the journal knows of one tool call; see `supervisor.reports.why.explain`.

    Raises:
        ConfigError: no such call or session, or several.
        JournalError: the journal cannot be read.
    """
    if not settings.journal.exists():
        raise ConfigError(f"No call {call!r}: there is no journal yet.")
    kept = PackStore(settings.packs, settings.config.section(UndoConfig))
    with open_journal(settings.journal) as journal:
        return explain(journal, call, session, kept.holds)


def verify(settings: Settings) -> ChainCheck:
    """Check the whole journal.

    Raises:
        ConfigError: there is none.
        JournalError: it cannot be opened.
    """
    path = settings.journal
    if not path.exists():
        raise ConfigError(f"There is no journal yet at {path}.")
    with open_journal(path) as journal:
        return journal.verify()
