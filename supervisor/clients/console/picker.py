"""A list in the place of the line: arrows and letters choose a row, Enter takes it, Escape leaves.

Rule: it is open until it is answered, or what has opened it ends. Meanwhile the line counts as begun, so that a
question waits for the end, as for that of a search; it never has keys that were meant for a question.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from supervisor.clients.console.choice_list import Choice, ChoiceList
from supervisor.display.fragments import Fragments

ROWS: Final = 9


class Picker:
    """The list of one terminal.

    Args:
        go_to: sends the keys to "pick", or back to "line"; says whether they go there.
    """

    def __init__(self, go_to: Callable[[str], bool]) -> None:
        self._go_to = go_to
        self._choices: ChoiceList | None = None
        self._answer: asyncio.Future[str | None] | None = None
        self.title = ""

    @property
    def is_open(self) -> bool:
        """Whether something is to be taken."""
        return self._choices is not None

    async def pick(self, title: str, choices: Sequence[Choice], current: str) -> str | None:
        """Return the value that the person takes; None where they leave, or are doing something else."""
        if self.is_open:
            return None
        self._choices, self.title = ChoiceList(choices, current), title
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer if self._go_to("pick") else None
        finally:
            self._choices = None
            self._go_to("line")

    def narrow(self, typed: str) -> None:
        """Leave the rows that fit what is typed."""
        if self._choices is not None:
            self._choices.narrow(typed)

    def move(self, by: int) -> None:
        """Choose a row further down, or up."""
        if self._choices is not None:
            self._choices.move(by)

    def take(self) -> None:
        """Take the row that is chosen, or the only one that fits."""
        best = self._choices.best if self._choices is not None else None
        if best is not None:
            self._settle(best.value)

    def leave(self) -> None:
        """Take nothing."""
        self._settle(None)

    def lines(self, columns: int, rows: int) -> list[Fragments]:
        return self._choices.lines(columns, min(rows, ROWS)) if self._choices is not None else []

    def _settle(self, value: str | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(value)
