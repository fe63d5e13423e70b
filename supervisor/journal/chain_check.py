"""The check of the journal's chain: whether every row is the one that was written.

Rule: the first row that does not fit ends it; what came before is intact.
"""

import sqlite3
from dataclasses import dataclass
from typing import Final

from supervisor.journal.rows import chain

_ROWS_AFTER: Final = "SELECT seq, session, at, body, digest FROM facts WHERE seq > ? ORDER BY seq LIMIT ?"
_BEFORE_ALL: Final = -(2**63)


@dataclass(frozen=True)
class ChainCheck:
    """The result of `verify`. `broken_at` is the first row that does not fit, 0 when all do."""

    rows: int
    sessions: int
    head: str
    broken_at: int = 0
    problem: str = ""


def followed(connection: sqlite3.Connection, before: ChainCheck, limit: int, sessions: set[str]) -> ChainCheck:
    """Go on from an earlier part, over so many rows, and add their sessions."""
    previous, seen, problem = bytes.fromhex(before.head), before.rows, ""
    try:
        for seq, session, at, body, digest in connection.execute(_ROWS_AFTER, (seen or _BEFORE_ALL, limit)):
            if seq != seen + 1:
                problem = f"row {seen + 1} is missing"
            elif not isinstance(body, bytes) or digest != chain(previous, seq, session, at, body):
                problem = f"row {seq} is not what was written"
            if problem:
                break
            previous, seen = digest, seq
            sessions.add(session)
    except sqlite3.Error as error:
        problem = f"the file is damaged: {error}"
    return ChainCheck(seen, 0, previous.hex(), seen + 1 if problem else 0, problem)
