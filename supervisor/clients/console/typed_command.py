"""`!command`: what a person runs where the model's commands run, and as those; the model is told with the next line.

Rule: it is a call as any other: judged by policy, rehearsed, asked about, recorded. What it prints comes as updates.
"""

import asyncio

from supervisor.acp import extensions
from supervisor.clients.console.session_link import SessionLink
from supervisor.clients.console.session_state import RUNNING
from supervisor.display.command_text import typed_call
from supervisor.errors import ConfigError, DaemonRefused


async def run_typed(session: SessionLink, command: str) -> None:
    """Run a command, until it has ended or was cancelled.

    Raises:
        StrongroomError: as `Link.request`, or no tool of the profile runs commands.
    """
    params = _params(session, command)
    link = await session.link()
    suspended, session.state.turn_state = session.state.suspended, RUNNING
    ok = False
    session.typed = link.submit(extensions.CALL_METHOD, params)
    session.screen.refresh()
    try:
        await asyncio.wrap_future(session.typed)
        ok = True
    except DaemonRefused as error:
        if not session.cancelling:
            raise
        session.say(str(error))
    finally:
        session.typed, session.cancelling = None, False
        session.show(session.state.finished(None))
        session.state.suspended = suspended
        session.screen.withdraw_approval(None)
        session.screen.turn_ended(ok=ok)
        session.screen.refresh()


def _params(session: SessionLink, command: str) -> extensions.CallParams:
    """Return what asks for the call.

    Raises:
        ConfigError: it is none.
    """
    if not command.strip():
        raise ConfigError("Write a command behind the exclamation mark; a blank before that makes it a prompt.")
    try:
        call = typed_call(command, session.state.facts.tools)
    except ValueError as error:
        raise ConfigError(f"This is no command: {error}.") from error
    if call is None:
        raise ConfigError(f"The profile {session.state.facts.profile} has no tool that runs commands.")
    return extensions.CallParams(session.session, *call, typed=True)
