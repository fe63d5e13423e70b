"""Reports on sessions: `strongroom history`, `why` and `verify`, read from the journal alone.

Rule: reading changes nothing. Formats are pure functions of a session's entries.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from supervisor.agent.models.gemini_contents import FORMAT_NAME, contents
from supervisor.agent.models.inline_contents import inlined
from supervisor.agent.models.model import CONTENTS, ModelRequest
from supervisor.agent.shown_contents import filled
from supervisor.agent.story_transcript import transcript_of
from supervisor.categories.media import MediaConfig
from supervisor.categories.restore import UndoConfig
from supervisor.config.settings import Settings
from supervisor.display.escape import document
from supervisor.display.fragments import ReportPage
from supervisor.errors import ConfigError
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import SessionChanged, SessionOpened
from supervisor.journal.index import session_named
from supervisor.journal.journal import ChainCheck, JournalEntry, open_journal
from supervisor.journal.lineage import story
from supervisor.reports.call_record import Why
from supervisor.reports.session_text import session_text
from supervisor.reports.why import explain
from supervisor.undo.packs import PackStore

_PLAIN: Final = ReportPage()
TEXT: Final = "text"
"""The format for people."""


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
        own = session_named(journal, wanted)
        entries = story(journal, own[0].session, own)
    if form == TEXT:
        return session_text(entries, page)
    return FORMATS[form](entries, ContentStore(settings.contents, settings.config.section(MediaConfig)))


def _messages(entries: Sequence[JournalEntry], store: ContentStore, sees: frozenset[str]) -> ModelRequest:
    """Return the messages as an API takes them, for a model that sees so much: what was left open is shown closed."""
    transcript = transcript_of(entries)
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


def _as_html(entries: Sequence[JournalEntry], store: ContentStore) -> str:
    from supervisor.reports.session_html import session_html

    return session_html(entries, store)


def _as_markdown(entries: Sequence[JournalEntry], _store: ContentStore) -> str:
    from supervisor.reports.session_markdown import session_markdown

    return session_markdown(entries)


def _as_gemini(entries: Sequence[JournalEntry], store: ContentStore) -> str:
    """Return what Gemini would be sent as `contents`; a model that is none stands for the newest."""
    request = _messages(entries, store, CONTENTS)
    writers = [origin.provider for origin in request.origins.values() if origin.format == FORMAT_NAME]
    model = _model(entries)
    taker = model if FORMAT_NAME in model else FORMAT_NAME
    return document(contents(request, writers[-1] if writers else FORMAT_NAME, taker))


FORMATS: Final[Mapping[str, Callable[[Sequence[JournalEntry], ContentStore], str]]] = MappingProxyType(
    {"json": _as_json, "anthropic": _as_anthropic, "gemini": _as_gemini, "html": _as_html, "markdown": _as_markdown}
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
