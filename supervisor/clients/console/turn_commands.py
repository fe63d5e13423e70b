"""`/fork` and `/rewind`: go on from the end of a turn, in a session of its own or in this one.

Rule: a person sees what a rewinding would change, and agrees, before anything is; a fork leaves everything as it is.
"""

from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection.requests import fork_params
from supervisor.clients.console.choice_list import Choice
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Document

_DIGITS: Final = 9
_YES: Final = "yes"
_NO: Final = "no"
_ANSWERS: Final = (Choice(_NO, _NO, "leave everything as it is"), Choice(_YES, _YES, "go back to the end of that turn"))


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


async def rewind(controller: SessionController, argument: str) -> None:
    """Take talk and files of this session back to the end of a turn, once the person has seen what that comes to.

    Raises:
        StrongroomError: nothing was done.
    """
    from supervisor.undo.rewinding_words import rewinding_lines

    number, _, agreed = argument.partition(" ")
    turn = _turn(controller, "rewind", number)
    if turn is None:
        if not number:
            controller.say("/rewind takes the number of a turn: the end of it is meant, and 0 is the beginning.")
        return
    params = extensions.RewindParams(session_id=controller.session, turn=turn, look=True)
    found = await controller.request(extensions.REWIND_METHOD, params, extensions.RewindResult)
    if agreed.strip() != _YES:
        controller.screen.show(Document("\n".join(rewinding_lines(found, done=False))))
        if not controller.screen.picks:
            controller.say(f"Nothing is changed yet. /rewind {turn} {_YES} does it.")
            return
        if await controller.screen.pick("rewind", _ANSWERS, _NO) != _YES:
            controller.say("Nothing was changed.")
            return
    params = msgspec.structs.replace(params, look=False)
    result = await controller.request(extensions.REWIND_METHOD, params, extensions.RewindResult)
    if result.ok:
        await controller.instead(lambda: controller.load(result.session_id, clear=True))
    controller.screen.show(Document("\n".join(rewinding_lines(result, done=True))))


def _turn(controller: SessionController, command: str, argument: str) -> int | None:
    """Return the turn that is named; None where none is, which is said if anything else is."""
    word = argument.removeprefix("@")
    if word.isascii() and word.isdecimal() and len(word) <= _DIGITS:
        return int(word)
    if word:
        controller.say(f"/{command} takes the number of a turn, as `strongroom history` shows it.", error=True)
    return None
