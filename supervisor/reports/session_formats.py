"""The formats that a session is shown, written and handed on in, a row each.

Rule: this imports nothing of weight, so that the command line can name them; each format imports what it needs. Each is
a pure function of a session's entries, and of the images and documents that are kept.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from supervisor.display.fragments import ReportPage
    from supervisor.journal.contents import ContentStore
    from supervisor.journal.journal import JournalEntry

TEXT: Final = "text"
"""The format for people."""
MARKDOWN: Final = "markdown"
HTML: Final = "html"


class SessionFormat(NamedTuple):
    """One row."""

    ending: str
    """Of the name of a file that holds it."""
    written: "Callable[[Sequence[JournalEntry], ContentStore, ReportPage], str]"
    """Makes it; the page is where a text for people is shown."""


def _as_text(entries: "Sequence[JournalEntry]", _store: "ContentStore", page: "ReportPage") -> str:
    from supervisor.reports.session_text import session_text

    return session_text(entries, page)


def _as_markdown(entries: "Sequence[JournalEntry]", _store: "ContentStore", _page: "ReportPage") -> str:
    from supervisor.reports.session_markdown import session_markdown

    return session_markdown(entries)


def _as_html(entries: "Sequence[JournalEntry]", store: "ContentStore", _page: "ReportPage") -> str:
    from supervisor.reports.session_html import session_html

    return session_html(entries, store)


def _as_json(entries: "Sequence[JournalEntry]", _store: "ContentStore", _page: "ReportPage") -> str:
    from supervisor.display.escape import document

    rows = [
        {"seq": entry.seq, "at": entry.at, "session": entry.session, "fact": entry.fact}
        | ({"damage": entry.damage} if entry.damage else {})
        for entry in entries
    ]
    return document(rows)


def _messages(api: str) -> "Callable[[Sequence[JournalEntry], ContentStore, ReportPage], str]":
    """Return what writes the messages that a function of `api_messages` makes."""

    def written(entries: "Sequence[JournalEntry]", store: "ContentStore", _page: "ReportPage") -> str:
        from supervisor.display.escape import document
        from supervisor.reports import api_messages

        return document(getattr(api_messages, api)(entries, store))

    return written


FORMATS: Final[Mapping[str, SessionFormat]] = MappingProxyType(
    {
        TEXT: SessionFormat("txt", _as_text),
        MARKDOWN: SessionFormat("md", _as_markdown),
        HTML: SessionFormat("html", _as_html),
        "json": SessionFormat("json", _as_json),
        "anthropic": SessionFormat("json", _messages("anthropic_messages")),
        "openai": SessionFormat("json", _messages("openai_items")),
        "chat": SessionFormat("json", _messages("openai_chat")),
        "gemini": SessionFormat("json", _messages("gemini_turns")),
    }
)
