"""A file as it was at the end of a turn, as far as packs or the root still hold it.

Rule: only a content whose digest is the one on record is given out; what is not known to be so is said. The first
change of a path after a moment says what it was then, whichever session made it; where there is none, the last change
before does, and where there is none either, none but others have changed it. A pack holds what a commit replaced, so
what others have written over since is gone. Reading changes nothing.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, NamedTuple

import msgspec

from supervisor.journal.facts import CallDecided, CallEnded, CallStarted
from supervisor.journal.journal import Journal
from supervisor.system.safe_files import NO_LINK
from supervisor.undo.packs import PackStore
from supervisor.undo.undo_plan import UNTOUCHED
from workers.changes.effects import NodeState
from workers.wire.pack_format import Broken, PackedContent, PackedName, PackReader

Held = Literal["pack", "root", "nothing", "gone"]
"""Where a file's content comes from; `nothing`: there was no file; `gone`: it is kept nowhere."""

_NAMED: Final = 4
"""Calls that are named."""


class EarlierFile(msgspec.Struct, frozen=True):
    """What is known of a path at a moment."""

    held: Held
    content: bytes = b""
    remarks: tuple[str, ...] = ()
    """What is to be known of it, in sentences; names in them are as they were written."""


class _Touch(NamedTuple):
    """A commit that changed a path: what that was before and after, and whether its content from before is kept."""

    row: int
    session: str
    call: str
    pack: str
    path: str
    """Relative to the root of its session."""
    before: NodeState | None
    after: NodeState | None


class _Touches:
    """The commits that changed a path, in the order of the journal.

    Raises:
        JournalError: the journal cannot be read.
    """

    def __init__(self, journal: Journal, store: PackStore, place: str) -> None:
        self.found: list[_Touch] = []
        self.unseen: list[tuple[int, str]] = []
        """Rows and calls of which nobody knows what they have changed there."""
        roots: dict[str, str] = {}
        for row, session, fact in journal.commits(0, journal.last()):
            if not isinstance(fact, CallDecided):
                roots[session] = fact.context.working_directory
            elif fact.committed and (path := _beneath(place, roots.get(session, ""))):
                self._add(store, row, session, fact, path)

    def _add(self, store: PackStore, row: int, session: str, fact: CallDecided, path: str) -> None:
        effects = fact.effects
        if effects is None:
            self.unseen.append((row, fact.call))
            return
        change = next((each for each in effects.changes if _path_of(each.path, each.raw_path) == path), None)
        if change is not None:
            self.found.append(_Touch(row, session, fact.call, fact.kept, path, change.before, change.after))
        elif effects.left_out:
            with suppress(OSError, Broken):
                name, _content = _packed(store, fact.kept, path)
                if name is not None:
                    self.found.append(_Touch(row, session, fact.call, fact.kept, path, name.before, name.after))
                return
            self.unseen.append((row, fact.call))


def earlier_file(
    journal: Journal, store: PackStore, place: str, row: int, read_now: Callable[[], bytes | None]
) -> EarlierFile:
    """Return what a path was when a row was written.

    Args:
        journal: of all sessions.
        store: of their packs.
        place: the path, absolute; no link leads to it.
        row: of the journal.
        read_now: reads what is there now; None where there is no file.

    Raises:
        JournalError: the journal cannot be read.
    """
    touches = _Touches(journal, store, place)
    before = (each for each in reversed(touches.found) if each.row <= row)
    last = next((each for each in before if _took_place(journal, each)), None)
    later = [each for each in touches.found if each.row > row]
    remarks = list[str]()
    if last is not None and later and not _alike(last.after, later[0].before):
        remarks.append(f"Others changed it between {last.call} and {later[0].call}; this is what the latter found.")
    end = later[0].row if later else row
    if unseen := [call for at, call in touches.unseen if (last.row if last is not None else 0) < at < end]:
        remarks.append(f"Nobody knows whether it was changed by {', '.join(unseen[:_NAMED])}.")
    if last is None and not later:
        content = read_now()
        remarks.insert(0, "No call has changed it, so far as is on record: this is what is there now.")
        return EarlierFile("nothing" if content is None else "root", content or b"", tuple(remarks))
    state = later[0].before if later else last.after if last is not None else None
    if state is None or state.kind != "file":
        was = "nothing there" if state is None else f"no file there, but a {state.kind}"
        return EarlierFile("nothing", b"", (f"There was {was}.", *remarks))
    for touch in later:
        with suppress(OSError, Broken):
            _name, content = _packed(store, touch.pack, touch.path)
            if content is not None and _holds(state, content):
                return EarlierFile("pack", content, tuple(remarks))
    content = read_now()
    if content is not None and _holds(state, content):
        return EarlierFile("root", content, tuple(remarks))
    known = f"Its content is gone: {state.size} bytes, SHA-256 {state.digest.hex() or 'unknown'}"
    why = "the packs that held it are no longer kept" if later else "others have written over it since"
    return EarlierFile("gone", b"", (f"{known}; {why}.", *remarks))


def _took_place(journal: Journal, touch: _Touch) -> bool:
    """Say whether a commit has changed anything, or may have."""
    facts = (entry.fact for entry in journal.of_session(touch.session, touch.row))
    ended = next(
        (each for each in facts if isinstance(each, CallStarted | CallEnded) and each.call == touch.call), None
    )
    return ended is None or (isinstance(ended, CallEnded) and ended.kind not in UNTOUCHED)


def _packed(store: PackStore, pack: str, path: str) -> tuple[PackedName | None, bytes | None]:
    """Return what a pack says of a path, and what the file there held before, where that is kept.

    Raises:
        OSError: it is not there.
        Broken: it is not what was written.
    """
    found, kept, wanted = None, bytearray(), False
    file = os.open(store.path(pack or "-"), os.O_RDONLY | NO_LINK)
    try:
        for part in PackReader(file).parts():
            match part:
                case PackedContent(data=data):
                    kept += data if wanted else b""
                case PackedName():
                    wanted = _path_of(part.path, part.raw_path) == path
                    found = part if wanted else found
    finally:
        os.close(file)
    return found, bytes(kept) if found is not None and found.kept else None


def _beneath(place: str, root: str) -> str:
    """Return a path relative to a root that it is in; else nothing."""
    return place.removeprefix(f"{root.rstrip('/')}/") if root and place.startswith(f"{root.rstrip('/')}/") else ""


def _path_of(path: str, raw: bytes) -> str:
    return os.fsdecode(raw) if raw else path


def _holds(state: NodeState, content: bytes) -> bool:
    """Say whether a content is that of a file."""
    return len(content) == state.size and state.digest in (b"", hashlib.sha256(content).digest())


def _alike(one: NodeState | None, other: NodeState | None) -> bool:
    """Say whether two states are of the same content, as far as is known."""
    if one is None or other is None:
        return one is other
    return (one.kind, one.size, one.target) == (other.kind, other.size, other.target) and (
        one.digest == other.digest or not (one.digest and other.digest)
    )
