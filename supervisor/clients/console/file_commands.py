"""`/diff` and `/open`: what the session's turns have changed, and a file of the root in the person's editor."""

import os
from pathlib import Path

import msgspec

from supervisor.acp.extensions import ChangedName
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Document, ShownCall
from supervisor.errors import ConfigError


async def diff(controller: SessionController, argument: str) -> None:
    """Show what calls have changed so far, one after the other, of all paths or of those at and beneath one."""
    within = argument.rstrip("/")
    calls = [(call, changes) for call in controller.state.calls if (changes := _of(call, within))]
    if not calls:
        controller.say(f"No call has changed a text{f' at {argument}' if argument else ''} so far.")
        return
    numbers = ", ".join(f"#{call.number}" for call, _ in calls)
    paths = len({change.path for _, changes in calls for change in changes})
    told = f"{paths} file{'s' * (paths > 1)}, by {numbers}"
    controller.screen.show(Document(told, [change for _, changes in calls for change in changes]))


def _of(call: ShownCall, within: str) -> list[ChangedName]:
    return [
        change
        for change in call.differences
        if call.ended and (not within or change.path == within or change.path.startswith(f"{within}/"))
    ]


async def open_file(controller: SessionController, argument: str) -> None:
    """Open a file in the person's editor: by its path beneath the root, or what a call is about.

    Raises:
        ConfigError: there is none, or it cannot be opened here.
    """
    call = controller.state.numbered(argument.removeprefix("#"))
    path = _subject(call) if call is not None else argument
    if not path:
        raise ConfigError("Name a file beneath the root, or the number of a call that is about one.")
    await controller.screen.open_file(_beneath(controller.state.facts.root, path))


def _subject(call: ShownCall) -> str:
    """Return the path of the file that a call has changed first, or that its arguments name."""
    if call.differences:
        return call.differences[0].path
    try:
        arguments = msgspec.json.decode(call.arguments or b"{}", type=dict[str, object])
    except msgspec.DecodeError:
        return ""
    return str(arguments.get("path") or "")


def _beneath(root: str, path: str) -> Path:
    """Return the file at a path beneath the root, which no link leads out of.

    Raises:
        ConfigError: there is none.
    """
    try:
        top, found = Path(root).resolve(strict=True), Path(root, path).resolve(strict=True)
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise ConfigError(f"{path!r} cannot be opened: {why}.") from error
    if not found.is_relative_to(top):
        raise ConfigError(f"{path!r} cannot be opened: it leads out of the root.")
    if not found.is_file():
        raise ConfigError(f"{path!r} cannot be opened: it is no file.")
    return found
