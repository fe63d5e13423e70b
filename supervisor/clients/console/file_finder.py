"""`@PATH` in the line: the files that fit what is typed of it, as the daemon finds them.

Rule: one question at a time goes to the daemon, for what is typed when the last one is answered; keys wait for none.
What is shown stays until there is something better. Where the session searches nothing, or nothing fits, one directory
is read, as for the Tab key; so a file that is ignored is found by its path alone.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Final, Protocol

from supervisor.acp import extensions
from supervisor.clients.console.choice_list import Choice, ChoiceList
from supervisor.clients.console.offers import paths
from supervisor.clients.console.session_controller import SessionController
from supervisor.display.escape import visible
from supervisor.display.fragments import Fragments
from supervisor.errors import StrongroomError

_BEGUN: Final = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"\n]*)|([^\s\"]\S*)?)\Z")
_LONGEST: Final = 256
"""Characters of a path that are looked for."""
_ROWS: Final = 7


def typed_path(before: str) -> str | None:
    """Return what is typed of a path, up to the cursor; None where none is begun."""
    found = None if before.startswith(("/", "!")) else _BEGUN.search(before)
    return None if found is None else (found[1] or found[2] or "")


def written(path: str) -> str:
    """Return a path as the line names it; "" where it cannot."""
    is_apart = any(char.isspace() for char in path)
    if visible(path) != path or "\n" in path or (is_apart and '"' in path) or path.startswith('"'):
        return ""
    return f'@"{path}"' if is_apart else f"@{path}"


class NamingLine(Protocol):
    """The line, as far as a path is typed in it."""

    def before_cursor(self) -> str:
        """Return what is typed before the cursor."""

    def replace_before(self, count: int, text: str) -> None:
        """Put a text in place of so many characters before the cursor."""


class FileFinder:
    """The files that one line may name.

    Args:
        line: where the person types.
        draw: shows the rows.
    """

    def __init__(self, controller: SessionController, line: NamingLine, draw: Callable[[], None]) -> None:
        self._controller = controller
        self._line = line
        self._draw = draw
        self._choices: ChoiceList | None = None
        self._typed: str | None = None
        """What is typed of a path."""
        self._left: str | None = None
        """What was typed when the person closed the list."""
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._choices is not None and self._typed is not None

    @property
    def takes(self) -> bool:
        """Whether a file is chosen, which Enter takes."""
        return self.is_open and self._choices is not None and self._choices.chosen is not None

    def changed(self) -> None:
        """Take note of a change in the line."""
        typed = typed_path(self._line.before_cursor())
        if typed is None or typed == self._left or not self._controller.session:
            self._typed = self._choices = None
            self._left = self._left if typed is not None else None
            return
        before, self._typed, self._left = self._typed, typed[:_LONGEST], None
        if self._looking is None and self._typed != before:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def move(self, by: int) -> None:
        """Choose a file further down, or up."""
        if self._choices is not None:
            self._choices.move(by)

    def leave(self) -> None:
        """Show no files for what is typed now."""
        self._left, self._typed, self._choices = self._typed, None, None

    def take(self) -> None:
        """Put the chosen file, or else the first, in place of what is typed of it."""
        best = self._choices.best if self._choices is not None else None
        begun = _BEGUN.search(self._line.before_cursor())
        if best is not None and begun is not None:
            self._choices = None
            goes_on = best.value.endswith("/")
            word = written(best.value).removesuffix('"') if goes_on else f"{written(best.value)} "
            self._line.replace_before(len(begun[0]), word)

    def lines(self, columns: int, rows: int) -> list[Fragments]:
        """Return what is shown, at most so many rows."""
        return self._choices.lines(columns, min(rows, _ROWS)) if self._choices is not None else []

    async def _look(self) -> None:
        """Find what is typed, until it is known."""
        known: str | None = None
        try:
            while (typed := self._typed) is not None and typed != known:
                found, known = await self._found(typed), typed
                if self._typed is not None:
                    self._choices = ChoiceList(map(_choice, found)) if found else None
                    self._draw()
        finally:
            self._looking = None

    async def _found(self, typed: str) -> list[str]:
        params = extensions.FindParams(self._controller.session, typed.encode("utf-8", "replace").decode())
        found: list[str] = []
        try:
            if self._controller.is_connected:  # else a key would start a daemon
                result = await self._controller.request(extensions.FIND_METHOD, params, extensions.FindResult)
                found = [path for path in result.paths if written(path)]
        except StrongroomError:
            pass  # the session searches nothing, or cannot now
        if not found:
            root = self._controller.state.facts.root
            here = await asyncio.to_thread(lambda: list(paths(root, typed)))
            found = [path for path, _ in here if written(path)]
        return found


def _choice(path: str) -> Choice:
    folder, _, name = path.rstrip("/").rpartition("/")
    return Choice(path, name + "/" * path.endswith("/"), folder)
