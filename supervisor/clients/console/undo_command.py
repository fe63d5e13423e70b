"""`/undo`: takes back what calls of this session have changed, and shows what was restored.

Rule: nothing is asked, for an undo can itself be taken back; what has changed since is left alone, unless it is forced.
"""

from typing import Final

from supervisor.acp import extensions
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Document

ARGUMENT: Final = "[N|turn|session|CALL] [force]"
_FORCE: Final = "force"


async def undo(controller: SessionController, argument: str) -> None:
    """Take back the last change, the N-th call, one by its id, all of a turn, or everything.

    Raises:
        StrongroomError: nothing was done.
    """
    words = [word.removeprefix("--") for word in argument.split()]  # as the command line has them
    wanted = [word for word in words if word != _FORCE]
    params = _params(controller, wanted, force=_FORCE in words) if len(wanted) <= 1 else None
    if params is None:
        calls = len(controller.state.calls)
        controller.say(f"/undo takes {ARGUMENT}; the calls of this session are numbered 1 to {calls}.", error=True)
        return
    from supervisor.undo.undo_lines import undo_lines

    result = await controller.request(extensions.UNDO_METHOD, params, extensions.UndoResult)
    if not result.steps:
        controller.say("Nothing to undo: this session has changed nothing that still stands.")
        return
    lines = [line for step in result.steps for line in undo_lines(step, "/undo")]
    controller.screen.show(Document("\n".join(lines)))


def _params(controller: SessionController, wanted: list[str], *, force: bool) -> extensions.UndoParams | None:
    """Return what to ask for; None where there is no such call."""
    session = controller.session
    match wanted:
        case []:
            return extensions.UndoParams(session_id=session, force=force)
        case ["turn" | "session" as scope]:
            return extensions.UndoParams(session_id=session, scope=scope, force=force)
        case [word] if word.isdecimal():
            call = controller.state.numbered(word)
            return extensions.UndoParams(session_id=session, calls=(call.id,), force=force) if call else None
        case _:
            return extensions.UndoParams(session_id=session, calls=tuple(wanted), force=force)
