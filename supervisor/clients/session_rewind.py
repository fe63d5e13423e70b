"""`strongroom rewind`: talk and files of a session go back to the end of a turn, by the daemon.

Rule: looking first: a person is shown what would be changed, and what would be left, before anything is.
"""

import os
from collections.abc import Callable

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link_events import approving
from supervisor.clients.connection.start import connect_or_private
from supervisor.clients.fork import full_id
from supervisor.config.settings import Settings
from supervisor.undo.undo_plan import REWIND


def rewind(
    settings: Settings, wanted: str, turn: int, agrees: Callable[[extensions.RewindResult], bool]
) -> tuple[extensions.RewindResult, bool]:
    """Have the daemon that runs, or one of its own, take a session back; return what that has come to, and True.

    Args:
        settings: of the home.
        wanted: the session's id, or the end of it.
        turn: at whose end it is to be.
        agrees: is shown what that would come to, and says whether it is done; else that is returned, and False.

    Raises:
        ConfigError: no such session or turn, or several.
        StrongroomError: nothing was done.
        DaemonLost: the daemon has gone; the journal knows what was done.
    """
    session = full_id(settings, wanted)
    with connect_or_private(settings, approving(REWIND), "rewind") as connected:
        connected.warn()
        taken = schema.ReopenParams(session_id=session, cwd=os.getcwd())
        connected.link.request("session/resume", taken, schema.SessionResult)

        def request(*, look: bool) -> extensions.RewindResult:
            params = extensions.RewindParams(session_id=session, turn=turn, look=look)
            return connected.link.request(extensions.REWIND_METHOD, params, extensions.RewindResult)

        found = request(look=True)
        return (request(look=False), True) if agrees(found) else (found, False)
