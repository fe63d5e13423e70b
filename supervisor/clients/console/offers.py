"""Offers of what may follow in a line: commands and their arguments, tool names, and paths beneath the session's root.

Rule: nothing is read but one directory. Looking never follows a link and never leaves the root, and reads at
most a bounded part of one directory. A name that holds something invisible is not offered.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final, NamedTuple

from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.slash_commands import known
from supervisor.display.escape import visible

_SCANNED: Final = 5000
"""Entries of a directory that are looked at."""
_OFFERED: Final = 200
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LineOffer(NamedTuple):
    """What may stand in the place of the last `length` characters."""

    text: str
    length: int
    shown: str = ""
    """How it is offered; "" for as it is."""
    about: str = ""


def offered(controller: SessionController, before: str, *, wanted: bool) -> Iterator[LineOffer]:
    """Yield what fits the session and may follow `before`; unless it is `wanted`, only commands."""
    if not wanted and not before.startswith("/"):
        return
    state = controller.state
    choices = {option.id: [choice.value for choice in option.options] for option in state.options}
    choices["undo"] = ["turn", "session", "force"]
    choices["rules"] = ["revoke", "keep"]
    choices["show"] = ["thinking"]
    choices["resume"] = [info.session_id for info in controller.known_sessions]
    yield from offers(
        before, root=state.facts.root, tools=state.facts.tools, commands=known(controller), choices=choices
    )


def offers(
    before: str, *, root: str, tools: Sequence[str], commands: Mapping[str, str], choices: Mapping[str, Sequence[str]]
) -> Iterator[LineOffer]:
    """Yield what may follow `before`, the text up to the cursor.

    Args:
        before: in which the last word is completed.
        root: the directory that paths are relative to; "" for none.
        tools: their names.
        commands: what each slash command does, by name without the slash.
        choices: what a command's argument may be.
    """
    if before.startswith("/") and "\n" not in before:
        name, space, argument = before[1:].partition(" ")
        if not space:
            for each, about in commands.items():
                if each.startswith(name):
                    yield LineOffer(f"/{each}", len(before), about=about)
            return
        if name in choices:
            yield from (LineOffer(each, len(argument)) for each in choices[name] if each.startswith(argument))
            return
    word = before.replace("\n", " ").rpartition(" ")[2]
    if word:
        yield from (LineOffer(tool, len(word), about="tool") for tool in tools if tool.startswith(word))
    if root:
        yield from (LineOffer(path, len(word), name) for path, name in paths(root, word))


def paths(root: str, word: str) -> Iterable[tuple[str, str]]:
    """Return the paths beneath `root` that begin with `word`, each with its last name; directories end in "/"."""
    folder, slash, begin = word.rpartition("/")
    parts = folder.split("/") if folder else []
    if word.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return []
    found: list[tuple[str, str]] = []
    with suppress(OSError, ValueError), _opened(root, parts) as descriptor, os.scandir(descriptor) as entries:
        for entry in islice(entries, _SCANNED):
            if _is_offered(entry, begin):
                name = f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                found.append((f"{folder}{slash}{name}", name))
    return sorted(found)[:_OFFERED]


def _is_offered(entry: "os.DirEntry[str]", begin: str) -> bool:
    is_hidden = entry.name.startswith(".") and not begin.startswith(".")
    if not entry.name.startswith(begin) or is_hidden or visible(entry.name) != entry.name or entry.is_symlink():
        return False
    return entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)


@contextmanager
def _opened(root: str, parts: Sequence[str]) -> Iterator[int]:
    """Give a descriptor of a directory beneath `root`, reached without a link.

    Raises:
        OSError: there is none.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            deeper = os.open(part, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)
