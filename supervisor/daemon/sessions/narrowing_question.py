"""The question whether `.strongroom.toml` of a session's root counts: asked once a content, of whoever is there.

Rule: it counts until somebody says that it does not; that is a clear yes to leaving it out, as to all that loosens
something. A no is remembered as well. Nobody waits for the answer: turns run meanwhile, with what the file leaves.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from supervisor.config.narrowing_choices import NarrowingChoice, NarrowingChoices
from supervisor.config.settings import Settings
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.errors import StrongroomError
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.tools.approval import ApprovalQuestion

_PLACES: Final = ("acp", "console")
"""Origins of sessions whose people can be asked between turns."""
_ASKED: Final = "{file} takes something away here: {told}"
_NAME: Final = "narrowing"
_SHOWN: Final = 8
"""Digits of a digest that tell one question from another."""


async def ask_about_narrowing(
    session: OpenSession, settings: Settings, change: Callable[[OpenSession, str, None], Awaitable[None]]
) -> None:
    """Ask whether the file of the session's root counts, where nobody has said yet, and keep the answer.

    `change` opens the session's profile anew, without what the file says; nothing runs in the session then.
    """
    less = session.profile.narrowing
    origin = session.session.opened.origin
    if less is None or less.used is not None or not session.attended or origin not in _PLACES:
        return
    call = f"{_NAME}-{less.digest[:_SHOWN]}"
    if call in session.subscribers.approvals:
        return
    reason = _ASKED.format(file=less.file, told="; ".join(less.told) or "nothing")
    asked = ApprovalQuestion(CallStarted(0, call, _NAME, "{}", False, "ask", reason), "narrow", reason)
    with session.subscribers.between_turns:
        answer = await session.subscribers.request_approval(asked)
        said, ok = "Nobody has answered: the file counts.", True
        if not answer.unanswered:
            said = "It does not count." if answer.approved else "It counts."
            try:
                choice = NarrowingChoice(not answer.approved, less.file, answer.by)
                NarrowingChoices(settings.narrowings_file).choose(less.digest, choice)
                if answer.approved:
                    await session.wait_until_idle()
                    await change(session, session.profile.name, None)
            except StrongroomError as error:  # it cannot be kept, or not be recorded, or something runs again
                said, ok = str(error), False
        ended = CallEnded(0, call, _NAME, ok, said, kind=None if ok else "internal")
        session.subscribers.tell(session.subscribers.projection.of_event(ended))
