"""Rows of the journal as they are read: each compared with the chain, and what cannot be read passed over.

Rule: what was changed or damaged costs itself. A row that does not fit its digest and the one of the row before it is
marked; where SQLite cannot read a page, the rows that are not on it are read one after the other.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

import msgspec

ANCHOR: Final = bytes(32)
"""What the first row is chained to."""

Damage = Literal["", "changed", "unchecked", "unreadable"]
"""Of a row: it is not what was written; the row before it is lost, so nobody can say; or it cannot be read itself."""

_SELECT: Final = """SELECT f.seq, f.session, f.at, f.body, f.digest, p.digest
    FROM facts f LEFT JOIN facts p ON p.seq = f.seq - 1 """
_RUN: Final = 256
"""Rows that are read at once where something is damaged; one by one if that fails."""
_SMALLEST: Final = 48
"""Bytes that no row is shorter than, its digest included."""
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNREAD: Final = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ}


class Row(NamedTuple):
    """A row; without a body where it cannot be read, and without a session where that is not known either."""

    seq: int
    session: str
    at: float
    body: bytes
    digest: bytes
    previous: bytes
    """The digest of the row before it; empty where that is lost."""
    damage: Damage


def chain(previous: bytes, seq: int, session: str, at: float, body: bytes) -> bytes:
    """Return a row's digest."""
    return hashlib.sha256(previous + head_of(seq, session, at) + body).digest()


def head_of(seq: int, session: str, at: float) -> bytes:
    """Return what stands in a row before its body, as the chain has it."""
    return msgspec.json.encode((seq, session, at))


def rows(
    connection: sqlite3.Connection, where: str, values: Sequence[str | float | bytes], keep: Callable[[Row], bool]
) -> Iterator[Row]:
    """Yield rows `f` in order.

    Args:
        connection: of a journal.
        where: the rest of the query; in the order of `f.seq`.
        values: its parameters.
        keep: says the same as `where`, of one row.

    Raises:
        sqlite3.Error: they cannot be read, and not for damage; or all is damaged.
    """
    last = 0
    try:
        for found in connection.execute(_SELECT + where, values):
            row = _checked(*found)
            if keep(row):
                yield row
            last = row.seq
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        yield from filter(keep, _salvaged(connection, last, error))


def is_damage(error: sqlite3.Error) -> bool:
    """Say whether an error means that a part of the file is not what SQLite wrote."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in _DAMAGED or code in _UNREAD or str(error).startswith("Could not decode")


def _checked(seq: Any, session: Any, at: Any, body: Any, digest: Any, previous: Any) -> Row:
    """Return a row with what is wrong with it; any value may be of any type in a damaged file."""
    if not (isinstance(session, str) and isinstance(at, float) and isinstance(body, bytes)):
        return Row(seq, session if isinstance(session, str) else "", 0.0, b"", b"", b"", "unreadable")
    known = ANCHOR if seq == 1 else previous if isinstance(previous, bytes) else b""
    damage: Damage = "" if known else "unchecked"
    if known and digest != chain(known, seq, session, at, body):
        damage = "changed"
    return Row(seq, session, at, body, digest, known, damage)


def _salvaged(connection: sqlite3.Connection, after: int, error: sqlite3.Error) -> Iterator[Row]:
    """Yield what can be read after a row, and for each row that cannot a mark, as far as the index knows of it."""
    sessions: dict[int, str] = {}
    with suppress(sqlite3.Error):  # as far as the index can be read
        sessions.update(connection.execute("SELECT seq, session FROM facts INDEXED BY facts_of_session"))
    last = max(sessions, default=0)
    with suppress(sqlite3.Error):
        last = max(last, connection.execute("SELECT max(seq) FROM facts NOT INDEXED").fetchone()[0] or 0)
    ((size,),) = connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
    last = min(last, size // _SMALLEST)
    if not last:
        raise error
    for first in range(after + 1, last + 1, _RUN):
        wanted = range(first, min(first + _RUN, last + 1))
        found = _read(connection, "WHERE f.seq >= ? AND f.seq < ? ORDER BY f.seq", (wanted.start, wanted.stop))
        if found is not None and [row.seq for row in found] == [seq for seq in wanted if seq in sessions]:
            yield from found
            continue
        for seq in wanted:
            alone = _read(connection, "WHERE f.seq = ?", (seq,)) or _read_without_the_row_before(connection, seq)
            if alone:
                yield alone[0]
            elif seq in sessions:
                yield Row(seq, sessions[seq], 0.0, b"", b"", b"", "unreadable")


def _read(connection: sqlite3.Connection, where: str, values: Sequence[int]) -> list[Row] | None:
    """Return rows; None where they cannot be read."""
    with suppress(sqlite3.Error):
        return [_checked(*found) for found in connection.execute(_SELECT + where, values)]
    return None


def _read_without_the_row_before(connection: sqlite3.Connection, seq: int) -> list[Row] | None:
    query = "SELECT seq, CAST(session AS BLOB), at, body, digest FROM facts NOT INDEXED WHERE seq = ?"
    with suppress(sqlite3.Error):
        return [
            _checked(seq, _text(session), at, body, digest, None)
            for seq, session, at, body, digest in connection.execute(query, (seq,))
        ]
    return None


def _text(data: Any) -> str | None:
    try:
        return str(data, "utf-8")
    except (TypeError, UnicodeDecodeError):
        return None
