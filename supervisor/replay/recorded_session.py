"""A recorded session: from the journal, or from a file that `strongroom history --format json` has written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from supervisor.config.profiles import Profile, profile_of
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, reason
from supervisor.journal.facts import SessionOpened, decode
from supervisor.journal.index import session_named
from supervisor.journal.journal import JournalEntry, open_recorded
from supervisor.session.earlier_session import EarlierSession, earlier_of, read_earlier
from supervisor.system.safe_files import read_bytes
from workers.catalog import offered_tools

_LIMIT: Final = 2**28
"""Bytes of a file."""


class _RecordedRow(msgspec.Struct, frozen=True):
    at: float
    session: str
    fact: dict[str, Any]


def recorded_session(settings: Settings, wanted: str) -> EarlierSession:
    """Return a session by its id, or the end of it where that is unique, or by the name of a file: with a slash.

    The entries of a file have no rows.

    Raises:
        ConfigError: there is none.
        JournalError: the journal cannot be read.
    """
    if "/" in wanted:
        return _of_file(Path(wanted))
    missing = ConfigError(f"No session {wanted!r}: there is no journal yet. A file is named with a slash: ./{wanted}")
    with open_recorded(settings.journal, missing) as journal:
        return read_earlier(journal, session_named(journal, wanted)[0].session)


def _of_file(file: Path) -> EarlierSession:
    try:
        rows = msgspec.json.decode(read_bytes(file, _LIMIT), type=list[_RecordedRow])
        entries = [JournalEntry(0, each.session, each.at, decode(json.dumps(each.fact).encode())) for each in rows]
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"The record {file} cannot be read: {reason(error)}.") from error
    own = [each for each in entries if each.session == entries[-1].session]
    before = entries[: len(entries) - len(own)]
    if [*before, *own] != entries or not own or not isinstance(own[0].fact, SessionOpened):
        raise ConfigError(f"The record {file} does not hold one session from its beginning.")
    return earlier_of(own[0].session, own, before)


def recorded_profile(settings: Settings, earlier: EarlierSession, root: str, name: str | None = None) -> Profile:
    """Return the profile that a session was opened with, on a directory in place of its root.

    It is as it is configured now, with the tools that it had then.

    Args:
        settings: with the configuration that counts.
        earlier: the session.
        root: the directory, absolute.
        name: of another profile.

    Raises:
        ConfigError: there is no such profile.
    """
    found, named = profile_of(settings, name or earlier.opened.profile), earlier.opened.context
    if not name:  # what it has got since, the session did not have
        tools = tuple(tool for tool in earlier.opened.tools if tool in offered_tools())
        found = replace(found, own_tools=tools, own_ask=tuple(tool for tool in found.ask if tool in tools))
    return replace(found, root=root, group=named.group, technology=named.technology, environment=named.environment)
