"""Reports on sessions: `strongroom history` and `why`, read from the journal alone.

Rule: reading changes nothing.
"""

from typing import Final

from supervisor.categories.media import MediaConfig
from supervisor.categories.restore import UndoConfig
from supervisor.config.settings import Settings
from supervisor.display.fragments import ReportPage
from supervisor.errors import ConfigError
from supervisor.journal.contents import ContentStore
from supervisor.journal.index import session_named
from supervisor.journal.journal import open_recorded
from supervisor.journal.lineage import story
from supervisor.reports.call_record import Why
from supervisor.reports.session_formats import FORMATS
from supervisor.reports.why import explain
from supervisor.undo.packs import PackStore

_PLAIN: Final = ReportPage()


def history(settings: Settings, wanted: str, form: str, page: ReportPage = _PLAIN) -> str:
    """Return a session in one of `FORMATS`; as text, for a page.

    `wanted` is its id, or the end of it where that is unique.

    Raises:
        ConfigError: no such session, or several.
        JournalError: the journal cannot be read.
    """
    with open_recorded(settings.journal, ConfigError(f"No session {wanted!r}: there is no journal yet.")) as journal:
        own = session_named(journal, wanted)
        entries = story(journal, own[0].session, own)
    return FORMATS[form].written(entries, ContentStore(settings.contents, settings.config.section(MediaConfig)), page)


def why(settings: Settings, call: str, session: str | None = None) -> Why:
    """Return what the journal knows of one tool call; see `supervisor.reports.why.explain`.

    Raises:
        ConfigError: no such call or session, or several.
        JournalError: the journal cannot be read.
    """
    kept = PackStore(settings.packs, settings.config.section(UndoConfig))
    with open_recorded(settings.journal, ConfigError(f"No call {call!r}: there is no journal yet.")) as journal:
        return explain(journal, call, session, kept.holds)
