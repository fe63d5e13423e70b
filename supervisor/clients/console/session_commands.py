"""Slash commands about sessions: which there are, words in all, another one, a fresh one, and its options."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from supervisor.acp import extensions
from supervisor.acp.schema import SessionInfo
from supervisor.clients.connection.requests import absolute_model
from supervisor.clients.console.choice_list import Choice
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.session_state import QUIET, SUSPENDED
from supervisor.clients.console.shown import Document
from supervisor.display.clock_time import clock_time
from supervisor.display.columns import cut, table
from supervisor.display.escape import visible

_LISTED: Final = 20
_TITLE: Final = 60


def show_table(controller: SessionController, rows: Sequence[Sequence[str]]) -> None:
    """Show rows, their columns one below the other."""
    controller.screen.show(Document(table(rows, controller.screen.width())))


async def clear(controller: SessionController, _argument: str) -> None:
    """Begin a fresh session like this one."""
    await controller.clear()


def choose(option: str) -> Callable[[SessionController, str], Awaitable[None]]:
    """Return the command that lists the values of an option, or chooses one."""

    async def run(controller: SessionController, argument: str) -> None:
        argument = argument or await _picked(controller, option) or ""
        if argument:
            argument = absolute_model(argument) if option == "model" else argument
            await controller.choose(option, argument)
            controller.say(f"The {option} is {argument} now.")
            return
        if _is_picked(controller, option):
            return
        found = controller.state.option(option)
        current = found.current_value if found else getattr(controller.state.facts, option, "")
        if not current:
            controller.say(f"This model has no {option}.", error=True)
            return
        rows = [
            ("*" if choice.value == current else " ", choice.value, choice.description or "")
            for choice in (found.options if found else ())
        ]
        if current not in [row[1] for row in rows]:
            rows.insert(0, ("*", current, ""))
        show_table(controller, rows)

    return run


def _is_picked(controller: SessionController, option: str) -> bool:
    """Say whether a value of an option is taken from a list: there are some, and a turn that runs lets it change."""
    found = controller.state.option(option)
    may_change = option == "mode" or controller.state.turn_state in (*QUIET, SUSPENDED)
    return controller.screen.picks and found is not None and len(found.options) > 1 and may_change


async def _picked(controller: SessionController, option: str) -> str | None:
    """Return the value that the person takes, if they are shown a list and take another one."""
    found = controller.state.option(option)
    if found is None or not _is_picked(controller, option):
        return None
    choices = [Choice(each.value, each.value, each.description or "") for each in found.options]
    value = await controller.screen.pick(option, choices, found.current_value)
    return value if value != found.current_value else None


async def sessions(controller: SessionController, _argument: str) -> None:
    """List the newest sessions."""
    found = await _titled(controller, pages=1)
    rows = [
        (
            "*" if info.session_id == controller.session else " ",
            info.session_id,
            _when(info),
            cut(info.title or "-", _TITLE) + _elsewhere(controller, info),
        )
        for info in found[:_LISTED]
    ]
    controller.screen.show(Document(table(rows, controller.screen.width()) if rows else "There are no sessions yet."))
    if len(found) > _LISTED:
        controller.say(f"... {len(found) - _LISTED} more; `strongroom sessions` lists them all.")


async def _titled(controller: SessionController, pages: int) -> list[SessionInfo]:
    """Return the sessions in which something was asked, and this one, the newest first."""
    listed = await controller.sessions(pages=pages)
    return [info for info in listed if info.title or info.session_id == controller.session]


def _when(info: SessionInfo) -> str:
    return (info.updated_at or "")[:16].replace("T", " ")


def _elsewhere(controller: SessionController, info: SessionInfo) -> str:
    """Return where a session is, unless it is here."""
    return "" if info.cwd in (controller.cwd, controller.state.facts.root) else f"  in {visible(info.cwd)}"


async def resume(controller: SessionController, argument: str) -> None:
    """Take up another session, whose id is, or ends in, the argument; without one, list them."""
    if not argument and controller.screen.picks and controller.state.turn_state in QUIET:
        found = [info for info in await _titled(controller, pages=2) if info.session_id != controller.session]
        choices = [
            Choice(info.session_id, info.title or "-", _when(info) + _elsewhere(controller, info)) for info in found
        ]
        if not choices:
            controller.say("There is no other session yet.")
        elif (taken := await controller.screen.pick("resume", choices, found[0].session_id)) is not None:
            await controller.instead(lambda: controller.load(taken, clear=True))
        return
    if not argument:
        await sessions(controller, "")
        controller.say("/resume ID resumes one; the end of an id is enough.")
        return
    await controller.instead(lambda: controller.load(argument, clear=True))


async def find(controller: SessionController, argument: str) -> None:
    """Find words in all sessions, and take up one that has them where the person chooses it."""
    from supervisor.reports.search_report import plain_lines

    if not argument:
        controller.say('/find WORDS looks in all sessions; "words together", green* and -without are words, too.')
        return
    params = extensions.SearchParams(argument, most=_LISTED)
    found = (await controller.request(extensions.SEARCH_METHOD, params, extensions.SearchResult)).found
    if not found:
        controller.say("Nothing holds these words.")
    elif controller.screen.picks and controller.state.turn_state in QUIET:
        here = controller.session
        choices = [
            Choice(
                each.session_id,
                each.text,
                f"{clock_time(each.at, time.time())} {'here' if each.session_id == here else each.title}",
            )
            for each in found
        ]
        taken = await controller.screen.pick("find", choices, choices[0].value)
        if taken not in (None, here):
            await controller.instead(lambda: controller.load(taken, clear=True))
    else:
        controller.screen.show(Document("\n".join(map(plain_lines, reversed(found)))))
        controller.say("/resume ID takes up one of these sessions.")
