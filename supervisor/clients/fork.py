"""`strongroom fork`: a new session with the conversation of another, up to the end of a turn, made by the daemon."""

import os

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link_events import decline
from supervisor.clients.connection.requests import fork_params
from supervisor.clients.connection.start import connect_or_private
from supervisor.config.settings import Settings
from supervisor.display.escape import visible
from supervisor.errors import ConfigError
from supervisor.journal.index import session_named
from supervisor.journal.journal import open_recorded


class ForkMade(msgspec.Struct, frozen=True):
    """The new session, and the one that it goes on from."""

    session: str
    forked_from: str
    turn: int | None
    """At whose end; None for the last one that had ended."""
    notices: tuple[str, ...]


def fork(settings: Settings, wanted: str, turn: int | None) -> ForkMade:
    """Have the daemon that runs, or one of its own, fork a session.

    Args:
        settings: of the home.
        wanted: the session's id, or the end of it.
        turn: at whose end; by default the last one that has ended.

    Raises:
        ConfigError: no such session or turn, or several.
        StrongroomError: it was not done.
    """
    session = full_id(settings, wanted)
    with connect_or_private(settings, decline, "fork") as connected:
        connected.warn()
        params = fork_params(session, os.getcwd(), turn, extensions.SessionOptions(origin="console"))
        result = connected.link.request("session/fork", params, schema.NewSessionResult)
        facts = (result.meta or {}).get(extensions.OPTIONS) or {}
        return ForkMade(result.session_id, session, turn, tuple(facts.get("notices", ())))


def full_id(settings: Settings, wanted: str) -> str:
    """Return a session's id by the end of it.

    Raises:
        ConfigError: no such session, or several.
        JournalError: the journal cannot be read.
    """
    with open_recorded(settings.journal, ConfigError(f"No session {wanted!r}: there is no journal yet.")) as journal:
        return session_named(journal, wanted)[0].session


def told(made: ForkMade) -> str:
    """Return what was done, for a person to read."""
    at = "its last turn that had ended" if made.turn is None else f"turn {made.turn}" if made.turn else "its beginning"
    lines = [f"{made.session} goes on from {made.forked_from}, at the end of {at}."]
    return "\n".join([*lines, f"Talk to it: strongroom console --session {made.session}", *map(visible, made.notices)])
