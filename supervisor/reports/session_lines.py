"""The listing of sessions, `strongroom sessions`: a line each, read from the journal alone.

Rule: reading changes nothing. What `strongroom call` opened, a session a call, is no conversation, and takes no more
than a line a root unless somebody asks for all.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from supervisor.config.settings import Settings
from supervisor.display.escape import one_line
from supervisor.journal.index import SessionIndex, Summary, utc
from supervisor.journal.journal import open_journal

_TITLE: Final = 100
"""Characters of a line's title."""


class SessionLine(msgspec.Struct, frozen=True, omit_defaults=True):
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
    folded: int = 0
    """Sessions of `strongroom call` before this one on the same root, which have no line of their own."""


def sessions(settings: Settings, here: str | None = None, *, every: bool = True) -> list[SessionLine]:
    """Return the sessions, oldest first.

    Args:
        settings: say where the journal is.
        here: a directory, absolute and without links: only what was opened in it or works on it.
        every: a line for each session; else one for all of `strongroom call` on a root, where the newest stands.

    Raises:
        JournalError: the journal cannot be read.
    """
    if not settings.journal.exists():
        return []
    with open_journal(settings.journal) as journal:
        index = SessionIndex(journal)
        index.refresh()
    listed = [each for each in index if not each.deleted and here in (None, each.cwd, each.root)]
    return [_line(summary) for summary in listed] if every else _folded(listed)


def _folded(listed: Sequence[Summary]) -> list[SessionLine]:
    """Return a line for each session, but for those of `strongroom call` one a root."""
    calls: dict[str, list[Summary]] = {}
    for each in listed:
        if each.origin == "call":
            calls.setdefault(each.root, []).append(each)
    lines = list[SessionLine]()
    for each in listed:
        group = calls[each.root] if each.origin == "call" else [each]
        if each is group[-1]:
            tools = dict.fromkeys(tool for one in group for tool in one.tools)
            together = replace(each, calls=sum(one.calls for one in group), tools=tuple(tools))
            lines.append(replace(_line(together), folded=len(group) - 1))
    return lines


def _line(summary: Summary) -> SessionLine:
    calls = f"{summary.calls} calls: {', '.join(summary.tools)}" if summary.calls else ""
    return SessionLine(
        summary.session,
        utc(summary.opened_at),
        summary.profile,
        summary.model,
        summary.root,
        summary.turns,
        summary.title or one_line(calls, _TITLE),
        summary.state,
    )
