"""Slash commands about sessions: which there are, another one, a fresh one, and the options of this one."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from supervisor.clients.connection.requests import absolute_model
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Document
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
        if argument:
            argument = absolute_model(argument) if option == "model" else argument
            await controller.choose(option, argument)
            controller.say(f"The {option} is {argument} now.")
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


async def sessions(controller: SessionController, _argument: str) -> None:
    """List the newest sessions."""
    listed = await controller.sessions(pages=1)
    found = [info for info in listed if info.title or info.session_id == controller.session]
    here = (controller.cwd, controller.state.facts.root)
    rows = [
        (
            "*" if info.session_id == controller.session else " ",
            info.session_id,
            (info.updated_at or "")[:16].replace("T", " "),
            cut(info.title or "-", _TITLE) + ("" if info.cwd in here else f"  in {visible(info.cwd)}"),
        )
        for info in found[:_LISTED]
    ]
    controller.screen.show(Document(table(rows, controller.screen.width()) if rows else "There are no sessions yet."))
    if len(found) > _LISTED:
        controller.say(f"... {len(found) - _LISTED} more; `strongroom sessions` lists them all.")


async def resume(controller: SessionController, argument: str) -> None:
    """Take up another session, whose id is, or ends in, the argument; without one, list them."""
    if not argument:
        await sessions(controller, "")
        controller.say("/resume ID resumes one; the end of an id is enough.")
        return
    await controller.instead(lambda: controller.load(argument, clear=True))
