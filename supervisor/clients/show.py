"""`strongroom show PATH@TURN`: a file as it was at the end of a turn, from the journal, the packs and the root.

Rule: reading changes nothing, and needs no daemon. What is given out is what was there, to the byte, or nothing is.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from supervisor.categories.restore import UndoConfig
from supervisor.clients.undo import sessions_here
from supervisor.config.settings import Settings
from supervisor.display.escape import name, visible
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.index import session_named
from supervisor.journal.journal import Journal, JournalEntry, open_recorded
from supervisor.journal.lineage import story, turn_line
from supervisor.system.safe_files import read_bytes
from supervisor.undo.earlier_file import EarlierFile, earlier_file
from supervisor.undo.packs import PackStore
from supervisor.undo.undo_plan import SessionChanges
from workers.changes.diff import DIFFS, TEXT, Budget, unified

_LIMIT: Final = 2**28
"""Bytes of a file that is read."""
_STEPS: Final = 4_000_000
"""Of one comparison."""


class ShownFile(msgspec.Struct, frozen=True):
    """A file at the end of a turn, and what is there now."""

    session: str
    turn: int
    path: str
    """Relative to the root."""
    root: str
    then: EarlierFile
    now: bytes | None
    """None where there is no file, or where it is too large."""


def shown_file(settings: Settings, path: str, turn: int, session: str | None, here: str) -> ShownFile:
    """Return what is known of a file.

    Args:
        settings: say where the journal is; it is only read.
        path: relative to the session's root, or absolute.
        turn: its end is meant; 0 is before the first one.
        session: an id or the end of one; by default the one here in which a turn was last.
        here: a directory, absolute and without links: where a session was opened, or its root.

    Raises:
        ConfigError: no such session, turn or path.
        StrongroomError: no session had a turn here.
        JournalError: the journal cannot be read.
    """
    store = PackStore(settings.packs, settings.config.section(UndoConfig))
    missing = StrongroomError("There is nothing to show: there is no journal yet.")
    with open_recorded(settings.journal, missing) as journal:
        own = _newest(journal, here) if session is None else session_named(journal, session)
        entries = story(journal, own[0].session, own)
        row = turn_line(entries).end_of(turn, own[0].session)
        root = SessionChanges([entry for entry in entries if entry.seq <= row]).root
        place = os.path.normpath(os.path.join(root, path))
        if not root or not place.startswith(f"{root.rstrip('/')}/"):
            raise ConfigError(f"{path!r} is not in the root {root!r} that the session had then.")
        now = _read(place)
        then = earlier_file(journal, store, place, row, lambda: now)
    return ShownFile(own[0].session, turn, os.path.relpath(place, root), root, then, now)


def _newest(journal: Journal, here: str) -> list[JournalEntry]:
    found = next((each.session for each in sessions_here(journal, here) if each.turns), None)
    if found is None:
        raise StrongroomError(f"There was no turn in {here} yet. Name a session with --session.")
    return journal.of_session(found)


def _read(place: str) -> bytes | None:
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.lstat(place).st_mode):
            return read_bytes(Path(place), _LIMIT)
    return None


def remarks(shown: ShownFile) -> Iterator[str]:
    """Yield what a person is to know of it, line by line."""
    at = f"{name(shown.path)} at the end of turn {shown.turn} of {shown.session}"
    for each in shown.then.remarks:
        yield f"{at}: {visible(each)}"


def difference(shown: ShownFile) -> str:
    """Return what has changed since, as a unified diff.

    Raises:
        StrongroomError: one of the two is not known, or no text.
    """
    then, now = (_text(shown.then.content), _text(shown.now or b""))
    if shown.then.held == "gone" or then is None or now is None:
        raise StrongroomError(f"{name(shown.path)} cannot be compared: it is no text, too large, or not kept.")
    made = unified(then, now, DIFFS, Budget(_STEPS))
    left = f"... {made.left_out} more lines\n" if made.left_out else ""
    return f"--- {shown.path}@{shown.turn}\n+++ {shown.path}\n{made.text}{left}" if made.text else ""


def _text(content: bytes) -> str | None:
    with suppress(UnicodeDecodeError):
        return content.decode() if len(content) <= TEXT and b"\0" not in content else None
    return None


def document(shown: ShownFile) -> dict[str, Any]:
    """Return it as scripts read it; `content` is None where it is no text, and `base64` has it then."""
    then = shown.then
    text = _text(then.content) if then.held in ("pack", "root") else None
    raw = then.content if text is None and then.held in ("pack", "root") else None
    known = {"session": shown.session, "turn": shown.turn, "path": shown.path, "root": shown.root}
    return known | {"held": then.held, "remarks": then.remarks, "content": text, "base64": raw}
