"""The check of the whole journal, and proofs of its sessions, which a stranger can check offline.

Rule: only what was found intact is signed. A proof holds the rows of one session, each with the digest of the row
before it, the head of the journal, and a signature over all of that; of other sessions nothing but digests.
`scripts/verify_proof.py` says its form, and what it proves.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.journal.chain_check import ChainCheck
from supervisor.journal.index import session_named
from supervisor.journal.journal import Journal, open_recorded
from supervisor.journal.rows import Row, head_of
from supervisor.system.installation_key import InstallationKey, kept_key, kept_or_made
from supervisor.version import VERSION

_FORM: Final = 1
_PREFIX: Final = b"strongroom proof 1 "
"""Of what is signed: a signature of this key over anything else is none over a proof."""


@dataclass(frozen=True)
class SignedCheck(ChainCheck):
    """The result of `verify`, with the key that proofs of this home are signed with; empty where none was made yet."""

    public_key: str = ""
    fingerprint: str = ""
    key_problem: str = ""
    """Why the key cannot be used, a sentence."""


def verify(settings: Settings) -> SignedCheck:
    """Check the whole journal.

    Raises:
        ConfigError: there is none.
        JournalError: it cannot be opened.
    """
    with open_recorded(settings.journal) as journal:
        checked = journal.verify()
    return _signed(checked, settings)


def prove(settings: Settings, wanted: str, at: float, write: Callable[[Iterator[bytes]], object]) -> SignedCheck:
    """Check the whole journal, and write the proof of a session if it is intact.

    Args:
        settings: say where the journal and the key are; the key is made if there is none.
        wanted: the session's id, or the end of one where that is unique.
        at: the time, in seconds since the epoch.
        write: is given the proof's lines, which are made as they are taken.

    Raises:
        ConfigError: no such session, or several; or the key cannot be used.
        JournalError: the journal cannot be opened.
    """
    with open_recorded(settings.journal) as journal:
        session = session_named(journal, wanted)[0].session
        checked = journal.verify()
        if not checked.problem:
            write(_lines(journal, session, checked, kept_or_made(settings.proof_key), at))
    return _signed(checked, settings)


def as_text(checked: SignedCheck) -> str:
    """Return what people are told of a check."""
    told = f"intact: {checked.rows} facts of {checked.sessions} sessions, head {checked.head}"
    if checked.problem:
        told = f"broken at row {checked.broken_at}: {checked.problem}; {checked.rows} rows before it are intact"
    key = f"key {checked.fingerprint} (Ed25519, public: {checked.public_key})" if checked.public_key else ""
    return "\n".join(filter(None, (told, key, checked.key_problem)))


def _lines(journal: Journal, session: str, checked: ChainCheck, key: InstallationKey, at: float) -> Iterator[bytes]:
    count = sum(1 for _ in journal.rows_of(session, checked.rows))
    statement = {
        "strongroom_proof": _FORM,
        "session": session,
        "facts": count,
        "made": at,
        "version": VERSION,
        "journal": {"rows": checked.rows, "head": checked.head},
        "public_key": key.public.hex(),
    }
    digest = hashlib.sha512()
    for line in _encoded(statement, journal.rows_of(session, checked.rows)):
        digest.update(line)
        yield line
    signature = key.sign(_PREFIX + digest.hexdigest().encode())
    yield _line({"signature": signature.hex()})


def _encoded(statement: dict[str, Any], rows: Iterable[Row]) -> Iterator[bytes]:
    yield _line(statement)
    for row in rows:
        told = {"head": head_of(row.seq, row.session, row.at).decode(), "body": row.body.decode()}
        yield _line({**told, "previous": row.previous.hex(), "digest": row.digest.hex()})


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _signed(checked: ChainCheck, settings: Settings) -> SignedCheck:
    found = checked.rows, checked.sessions, checked.head, checked.broken_at, checked.problem
    try:
        key = kept_key(settings.proof_key)
    except ConfigError as error:
        return SignedCheck(*found, key_problem=str(error))
    return SignedCheck(*found) if key is None else SignedCheck(*found, key.public.hex(), key.fingerprint)
