"""A list of which a person takes one row: its rows, those that fit what is typed, and the one that is chosen. Pure."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from supervisor.display.columns import cut, width
from supervisor.display.fragments import Fragments

_MARK: Final = "> "
_GAP: Final = "  "
_LEAST: Final = 4
"""Columns below which a text is not shown."""


class Choice(NamedTuple):
    """One row. What is shown of it is made safe here."""

    value: str
    label: str
    about: str = ""


class ChoiceList:
    """The rows.

    Args:
        choices: all that there are.
        value: of the one that is chosen at first; none is by default.
    """

    def __init__(self, choices: Iterable[Choice], value: str = "") -> None:
        self._all = self._fitting = tuple(choices)
        self._at = next((at for at, each in enumerate(self._all) if each.value == value), -1)

    @property
    def chosen(self) -> Choice | None:
        return self._fitting[self._at] if 0 <= self._at < len(self._fitting) else None

    @property
    def best(self) -> Choice | None:
        return self.chosen or (self._fitting[0] if self._fitting else None)

    def narrow(self, typed: str) -> None:
        """Leave the rows that have all words of what is typed; the first is chosen then."""
        words = typed.casefold().split()
        self._fitting = tuple(
            each for each in self._all if all(word in f"{each.label} {each.about}".casefold() for word in words)
        )
        self._at = 0

    def move(self, by: int) -> None:
        """Choose a row further down, or up; after the last one comes the first."""
        if self._fitting:
            self._at = (max(self._at, -1 if by > 0 else 0) + by) % len(self._fitting)

    def lines(self, columns: int, rows: int) -> list[Fragments]:
        """Return the rows around the chosen one, at most so many."""
        if not self._fitting:
            return [[("dim", f"  {cut('nothing fits', columns - 2)}")]]
        first = max(0, min(self._at - rows // 2, len(self._fitting) - rows))
        shown = self._fitting[first : first + rows]
        room = max((width(cut(each.label, columns)) for each in shown), default=0)
        return [self._line(each, columns, room) for each in shown]

    def _line(self, choice: Choice, columns: int, room: int) -> Fragments:
        is_chosen = choice is self.chosen
        label = cut(choice.label, max(_LEAST, columns - len(_MARK)))
        line: Fragments = [("bold" if is_chosen else "", f"{_MARK if is_chosen else '  '}{label}")]
        left = columns - len(_MARK) - room - len(_GAP)
        if choice.about and left >= _LEAST:
            line.append(("dim", " " * (room - width(label)) + _GAP + cut(choice.about, left)))
        return line
