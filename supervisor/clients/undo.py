"""`strongroom undo`: what calls have changed is restored, by the daemon, in the session that made them.

Rule: looking first: what is to be taken back is read from the journal and named to the daemon call by call, so that
exactly what a person was shown is undone, whatever else happens meanwhile.
"""

from typing import Any, Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.categories.restore import UndoConfig
from supervisor.clients.connection.link import every_field
from supervisor.clients.connection.link_events import approving
from supervisor.clients.connection.start import connect_or_private
from supervisor.config.settings import Settings
from supervisor.display.escape import name, visible
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import CallDecided
from supervisor.journal.index import SessionIndex, Summary, session_named, utc
from supervisor.journal.journal import Journal, JournalEntry, open_recorded
from supervisor.undo.packs import PackStore
from supervisor.undo.undo_lines import change_lines, undo_lines
from supervisor.undo.undo_plan import TOOL, Extent, SessionChanges, UndoStep

_CANDIDATES: Final = 5


class Planned(msgspec.Struct, frozen=True):
    """What would be taken back, in this order."""

    session: str
    root: str
    steps: tuple[UndoStep, ...]


def planned(settings: Settings, call: str | None, extent: Extent, session: str | None, here: str) -> Planned:
    """Return what there is to take back.

    Args:
        settings: say where the journal is; it is only read.
        call: an id, as `strongroom history` shows it; without one, `extent` says how far back.
        extent: as `Extent` says.
        session: an id or the end of one; by default the one of the call, or the one that made the last change here.
        here: a directory, absolute and without links: where a session was opened, or its root.

    Raises:
        ConfigError: no such session or call, or several.
        StrongroomError: there is nothing to take back.
        JournalError: the journal cannot be read.
    """
    store = PackStore(settings.packs, settings.config.section(UndoConfig))
    with open_recorded(settings.journal, StrongroomError("Nothing to undo: there is no journal yet.")) as journal:
        if session is not None:
            entries = session_named(journal, session)
        elif call is not None:
            entries = journal.of_session(_session_of(journal, call, here))
        else:
            entries = _newest(journal, here)
    changes, found = SessionChanges(entries), entries[0].session
    calls = changes.extent(extent) if call is None else [call]
    if not calls:
        raise StrongroomError(f"Nothing to undo: the session {found} has changed nothing that still stands.")
    if not changes.root:
        raise StrongroomError(
            f"The session {found} cannot undo: row {entries[0].seq} of the journal, or one before it, which said where "
            f"it worked, is lost. What it kept is in {settings.packs}."
        )
    return Planned(found, changes.root, tuple(changes.step(each, store.holds) for each in calls))


def undoable(settings: Settings, here: str) -> list[UndoStep]:
    """Return the calls that can be taken back in the session that last changed something here, the last first.

    Raises:
        StrongroomError: there is none.
    """
    return [step for step in planned(settings, None, "session", None, here).steps if not step.problem]


def _session_of(journal: Journal, call: str, here: str) -> str:
    """Return the session of a call. Of several, one that committed it goes before others, then the newest one here.

    Raises:
        ConfigError: there is no such call; or several, and none of them here.
    """
    known = [entry for entry in journal.mentioning(call) if getattr(entry.fact, "call", None) == call]
    committed = [entry for entry in known if isinstance(entry.fact, CallDecided) and entry.fact.committed]
    found = list(dict.fromkeys(entry.session for entry in committed or known))
    if not found:
        raise ConfigError(f"No call {call!r}. `strongroom history SESSION` shows the calls of a session.")
    if len(found) == 1:
        return found[0]
    for summary in sessions_here(journal, here):
        if summary.session in found:
            return summary.session
    named = ", ".join(found[-1 : -_CANDIDATES - 1 : -1])
    raise ConfigError(f"{len(found)} sessions have a call {call!r}: {named}. Choose one with --session-id.")


def _newest(journal: Journal, here: str) -> list[JournalEntry]:
    """Return the session that made the last change on a directory that stands: by the journal's rows, not by clocks."""
    last, newest = 0, list[JournalEntry]()
    for summary in sorted(sessions_here(journal, here), key=lambda each: each.changed_at, reverse=True):
        if summary.changed_at <= last:
            break  # none that follows has changed anything since
        entries = journal.of_session(summary.session)
        if (found := SessionChanges(entries).last) > last:
            last, newest = found, entries
    if newest:
        return newest
    raise StrongroomError(
        f"Nothing to undo: no session on {here} has changed anything that still stands. `strongroom sessions` lists "
        "them all; name one with --session-id, or a call."
    )


def sessions_here(journal: Journal, here: str) -> list[Summary]:
    """Return the sessions that were opened here or work on it, the last updated first."""
    index = SessionIndex(journal)
    index.refresh()
    return index.listing(where=lambda each: here in (each.cwd, each.root))


def undo(settings: Settings, wanted: Planned, *, force: bool) -> extensions.UndoResult:
    """Have the daemon that runs, or one of its own, take back what was planned.

    Raises:
        StrongroomError: nothing was done.
        DaemonLost: the daemon has gone; the journal knows what was done.
    """
    with connect_or_private(settings, approving(TOOL), "undo") as connected:
        connected.warn()
        options = extensions.SessionOptions(modelless=True)
        taken = schema.ReopenParams(session_id=wanted.session, cwd=wanted.root, meta={extensions.OPTIONS: options})
        connected.link.request("session/resume", taken, schema.SessionResult)
        calls = tuple(step.call for step in wanted.steps)
        params = extensions.UndoParams(session_id=wanted.session, calls=calls, force=force)
        return connected.link.request(extensions.UNDO_METHOD, params, extensions.UndoResult)


def preview(wanted: Planned) -> str:
    """Return what would be taken back, for a person to read."""
    lines = [f"session {wanted.session}, root {visible(wanted.root)}"]
    for step in wanted.steps:
        at = f", {utc(step.at)}" if step.at else ""
        lines.append(f"{name(step.title or step.call)}  ({name(step.call)}{at})")
        lost = step.problem or step.cannot_undo * step.cannot_undo.startswith("it ")
        words = [lost] if lost else change_lines(step.changes, step.more, done=False)
        lines += [f"    {visible(word)}" for word in words]
        if step.cannot_undo and not lost:
            lines.append(f"    but {visible(step.cannot_undo)}; --force restores the rest")
    return "\n".join(lines)


def told(result: extensions.UndoResult) -> str:
    """Return what was taken back, and what was not, for a person to read."""
    return "\n".join(line for step in result.steps for line in undo_lines(step))


def document(result: extensions.UndoResult) -> dict[str, Any]:
    """Return the result as scripts read it: every field, also those that say nothing."""
    steps = [{**every_field(step), "undo": step.undo or None} for step in result.steps]
    return {"session": result.session_id, "steps": steps}
