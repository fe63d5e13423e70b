"""`/fork`: goes on from the end of a turn, in a session of its own.

Rule: the session that is left stays as it is, and what runs in it goes on.
"""

from typing import Final

from supervisor.acp import extensions, schema
from supervisor.clients.connection.requests import fork_params
from supervisor.clients.console.session_controller import SessionController

_DIGITS: Final = 9


async def fork(controller: SessionController, argument: str) -> None:
    """Go on in a new session with the conversation of this one, up to the end of a turn; by default the last.

    Raises:
        StrongroomError: it cannot be forked; this one goes on.
    """
    turn = _turn(controller, "fork", argument)
    if turn is None and argument:
        return
    params = fork_params(controller.session, controller.cwd, turn, extensions.SessionOptions(origin="console"))
    made = await controller.request("session/fork", params, schema.NewSessionResult)
    before = controller.session
    await controller.instead(lambda: controller.load(made.session_id, clear=True))
    controller.say(f"This session goes on from {before}, which stays as it is; /resume comes back to it.")


def _turn(controller: SessionController, command: str, argument: str) -> int | None:
    """Return the turn that is named; None where none is, which is said if anything else is."""
    word = argument.removeprefix("@")
    if word.isascii() and word.isdecimal() and len(word) <= _DIGITS:
        return int(word)
    if word:
        controller.say(f"/{command} takes the number of a turn, as `strongroom history` shows it.", error=True)
    return None
