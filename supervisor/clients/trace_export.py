"""`strongroom traces`: the journal as spans of OpenTelemetry, on standard output or to a server.

Rule: the journal is the buffer. How far a server has taken it stands in a file of the home, and moves only when it has
said so; whoever was killed before that sends the same spans again, with the same ids. Nothing is read while a server is
waited for, so that no reader holds the journal up.
"""

import hashlib
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, JournalError
from supervisor.journal.facts import SessionDeleted, SessionOpened
from supervisor.journal.index import session_named
from supervisor.journal.journal import Journal, JournalEntry, Position, open_recorded
from supervisor.reports.session_spans import SessionSpans, Span, export_request
from supervisor.system import safe_files

PATIENCE_S: Final = 300.0
"""Seconds for which a server is waited for that does not take a request."""
_SPANS: Final = 512
"""Spans of one request, about."""
_BYTES: Final = 2**20
"""The same of its content."""
_ROWS: Final = 20_000
"""Rows that are read at most before it is noted how far it is."""
_LOOK_S: Final = 1.0
"""Seconds after which it is looked for new facts."""


class _SpanBatch(NamedTuple):
    spans: list[Span]
    seen: Position
    """The last row that was read."""


class ExportCursor:
    """How far one server has taken the journal; a file of the home knows it of each.

    Args:
        path: of the file.
        url: of the server.
    """

    def __init__(self, path: Path, url: str) -> None:
        self._path, self._key = path, hashlib.sha256(url.encode()).hexdigest()[:16]

    def get(self, journal: Journal) -> Position:
        """Return the last row that was taken; the beginning where that is not known, or is not of this journal."""
        row, digest = self._read().get(self._key, (0, b""))
        found = journal.position(row)
        return found if found is not None and found.digest == digest else Position()

    def keep(self, seen: Position) -> None:
        """Note that everything up to a row was taken.

        Raises:
            ConfigError: it cannot be noted.
        """
        try:
            with safe_files.locked_for_change(self._path):
                known = self._read() | {self._key: (seen.seq, seen.digest)}
                safe_files.replace_file(self._path, msgspec.json.encode(known), durable=False)
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}.") from error

    def _read(self) -> dict[str, tuple[int, bytes]]:
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(safe_files.read_bytes(self._path, own=True), type=dict[str, tuple[int, bytes]])
        return {}


class TraceExport:
    """Spans of a journal, as far as they were not exported.

    Args:
        journal: is only read.
        session: the only one that is wanted; "" for all that are not deleted.
        content: whether spans have what was said, read and printed.
    """

    def __init__(self, journal: Journal, session: str, *, content: bool) -> None:
        self._journal, self._session, self._content = journal, session, content
        self._folds: dict[str, SessionSpans] = {}
        gone = journal.mentioning("SessionDeleted") if not session else ()
        self._deleted = {entry.session for entry in gone if isinstance(entry.fact, SessionDeleted)}

    def batch(self, seen: Position) -> _SpanBatch:
        """Return the spans that ended after a row, as many as one request has.

        Raises:
            JournalError: a row is not what was written.
        """
        spans, size, last = list[Span](), 0, seen
        with closing(self._journal.since(seen.seq, seen.digest)) as rows:
            for entry, digest in rows:
                if not digest:
                    why = f"Row {entry.seq} of the journal is not what was written; `strongroom verify` says more."
                    raise JournalError("journal_corrupt", why)
                if entry.session not in self._deleted and self._session in ("", entry.session):
                    ended = [*self._fold_of(entry).add(entry)]
                    spans += ended
                    size += len(msgspec.json.encode(ended)) if self._content else 0
                last = Position(entry.seq, digest)
                if len(spans) >= _SPANS or size >= _BYTES or entry.seq - seen.seq >= _ROWS:
                    break
        return _SpanBatch(spans, last)

    def _fold_of(self, entry: JournalEntry) -> SessionSpans:
        """Return the fold of an entry's session, up to that entry."""
        fold = self._folds.get(entry.session)
        if fold is None:
            fold = self._folds[entry.session] = SessionSpans(entry.session, content=self._content)
            if not isinstance(entry.fact, SessionOpened):
                for each in self._journal.of_session(entry.session):
                    if each.seq < entry.seq:
                        list(fold.add(each))
        return fold


def export_traces(
    settings: Settings,
    wanted: str | None,
    send: Callable[[bytes], object],
    cursor: ExportCursor | None,
    *,
    follow: bool,
    content: bool,
    wait: Callable[[float], object] = time.sleep,
) -> int:
    """Send the spans of the journal; return how many.

    Args:
        settings: say where the journal is.
        wanted: a session's id, or the end of one where that is unique; None is all sessions.
        send: returns when one request was taken.
        cursor: how far that is known to be; None begins at the journal's beginning, and notes nothing.
        follow: go on as the journal grows, until it is interrupted.
        content: whether spans have what was said, read and printed.
        wait: waits so many seconds.

    Raises:
        ConfigError: there is no journal, or no such session.
        JournalError: the journal cannot be read, or is not what was written.
        StrongroomError: the spans are not taken.
    """
    with open_recorded(settings.journal) as journal:
        entries = session_named(journal, wanted) if wanted is not None else []
        seen = cursor.get(journal) if cursor is not None else Position()
        if entries:
            seen = journal.position(entries[0].seq - 1) or Position()
        export = TraceExport(journal, entries[0].session if entries else "", content=content)
        sent = 0
        while True:
            batch = export.batch(seen)
            if batch.spans:
                send(export_request(batch.spans))
                sent += len(batch.spans)
            if batch.seen.seq > seen.seq:
                seen = batch.seen
                if cursor is not None:
                    cursor.keep(seen)
            elif not follow:
                return sent
            else:
                wait(_LOOK_S)
