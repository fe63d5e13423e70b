"""The line of the person on the full screen: several rows where need be, what was typed before, what Tab offers.

Rule: what a key means is a row of a table; keys that are in none edit the text, as Textual has it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual import events
from textual.document._document import EditResult
from textual.document._edit import Edit
from textual.widgets import TextArea

from supervisor.clients.console.daemon_link import in_thread
from supervisor.clients.console.offers import LineOffer
from supervisor.clients.console.typed_history import append, load
from supervisor.clients.console.waiting_lines import WaitingLines
from supervisor.display.fragments import Fragments

if TYPE_CHECKING:
    from supervisor.clients.console.file_finder import FileFinder

NEW_LINE: Final = ("alt+enter", "shift+enter", "ctrl+j")
"""Keys that begin a new row of a text."""
_OFFERED: Final = 7
"""Rows of what Tab offers."""


class PromptArea(TextArea):
    """The line.

    Args:
        remembered: the file of what was typed.
        typed: is told of every change.
        keys: what keys do; each says whether it did anything.
        offers: give what may follow a text; `wanted`, by the Tab key.
    """

    def __init__(
        self,
        remembered: Path,
        typed: Callable[[], None],
        keys: Mapping[str, Callable[[], bool]],
        offers: Callable[[str, bool], Sequence[LineOffer]],
    ) -> None:
        super().__init__(
            id="prompt", soft_wrap=True, show_line_numbers=False, compact=True, highlight_cursor_line=False
        )
        self.cursor_blink = False
        self.lines = WaitingLines(self)
        self._remembered = remembered
        self._typed = typed
        self._keys = keys
        self._offers_of = offers
        self._offers: Sequence[LineOffer] = ()
        self._chosen = -1
        """The number of the offer that stands in the line; -1 for none."""
        self._before = ""
        self.files: FileFinder | None = None
        """The files that the line may name."""
        self._history: list[str] = []
        self._at = 0
        """How far back in the history the line is; 0 for what is being typed."""

    async def remember_all(self) -> None:
        """Read what was typed before."""
        self._history = [*await asyncio.wrap_future(in_thread(lambda: load(self._remembered))), *self._history]

    # --- the text -------------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        self.load_text(text)
        self.move_cursor(self.document.end)
        self._typed()

    def reset(self) -> None:
        self._at = 0
        self.put("")
        self.offer()

    def insert_text(self, data: str) -> None:
        self.insert(data)

    def remember(self) -> None:
        self._history.append(self.text)
        append(self._remembered, self.text)

    def edit(self, edit: Edit) -> EditResult:
        result = super().edit(edit)
        self._at = 0
        self.offer()
        if self.files is not None:
            self.files.changed()
        self._typed()
        return result

    def before_cursor(self) -> str:
        row, column = self.cursor_location
        return "\n".join([*(self.document.get_line(each) for each in range(row)), self.document.get_line(row)[:column]])

    def replace_before(self, count: int, text: str) -> None:
        row, column = self.cursor_location
        self.replace(text, (row, column - count), (row, column))

    # --- keys -----------------------------------------------------------------------------------------------------

    async def _on_key(self, event: events.Key) -> None:
        own: dict[str, Callable[[], bool]] = {
            "tab": lambda: self.offer(wanted=True) or True,
            "up": self._earlier,
            "down": self._later,
            "escape": self._close_offers,
            "enter": self._take_offer,
            "ctrl+r": self._find_earlier,
            "backspace": self._delete_paste,
            **dict.fromkeys(NEW_LINE, self._new_line),
        }
        for table in (self._file_keys(), own, self._keys):
            act = table.get(event.key)
            if act is not None and act():
                event.stop()
                event.prevent_default()
                return

    def _file_keys(self) -> Mapping[str, Callable[[], bool]]:
        """Return what keys do while files are shown."""
        files = self.files
        if files is None or not files.is_open:
            return {}
        acts: dict[str, Callable[[], None]] = {
            "up": partial(files.move, -1),
            "down": partial(files.move, 1),
            "tab": files.take,
            "escape": files.leave,
            **({"enter": files.take} if files.takes else {}),
        }
        return {key: partial(self._act, act) for key, act in acts.items()}

    def _act(self, act: Callable[[], None]) -> bool:
        act()
        self._typed()
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        self.lines.paste(event.text)

    def _new_line(self) -> bool:
        self.insert("\n")
        return True

    def _delete_paste(self) -> bool:
        row, column = self.cursor_location
        word = self.lines.paste_before(self.document.get_line(row)[:column])
        if word and self.selection.is_empty:
            self.delete((row, column - word), (row, column))
        return bool(word)

    def _earlier(self) -> bool:
        """Show the line that was typed before this one, where the cursor is in the first row."""
        if self._offers:
            return self._choose(-1)
        if not self.cursor_at_first_line:
            return False
        if self.lines.ahead and not self.text:
            self.lines.reclaim()
            return True
        return self._recall(1)

    def _later(self) -> bool:
        if self._offers:
            return self._choose(1)
        return self._recall(-1) if self._at and self.cursor_at_last_line else False

    def _recall(self, by: int) -> bool:
        if not 0 <= self._at + by <= len(self._history):
            return True
        if not self._at:
            self._before = self.text
        at = self._at + by
        self.put(self._history[-at] if at else self._before)
        self._at = at
        return True

    def _find_earlier(self) -> bool:
        """Show the line before this one that holds what was typed; what was typed again where there is none."""
        if not self._at:
            self._before = self.text
        earlier = range(self._at + 1, len(self._history) + 1)
        at = next((at for at in earlier if self._before.lower() in self._history[-at].lower()), 0)
        before = self._before
        self.put(self._history[-at] if at else before)
        self._at, self._before = at, before
        return True

    # --- offers ---------------------------------------------------------------------------------------------------

    def offer(self, *, wanted: bool = False) -> bool:
        """LineOffer what may follow, or let the next offer stand in the line; return whether there is any."""
        if wanted and self._offers:
            return self._choose(1)
        self._offers, self._chosen = self._offers_of(self.before_cursor(), wanted), -1
        if wanted and self._offers:
            self._choose(1)
            if len(self._offers) == 1:
                self._close_offers()
        return bool(self._offers)

    def _choose(self, by: int) -> bool:
        old = self._offers[self._chosen].text if self._chosen >= 0 else ""
        chosen = (self._chosen + by) % len(self._offers) if self._chosen >= 0 or by > 0 else len(self._offers) - 1
        offer = self._offers[chosen]
        offers = self._offers
        self.replace_before(len(old) or offer.length, offer.text)
        self._offers, self._chosen = offers, chosen
        self._typed()
        return True

    def _close_offers(self) -> bool:
        had, self._offers, self._chosen = bool(self._offers), (), -1
        self._typed()
        return had

    def _take_offer(self) -> bool:
        """Let Enter take what is offered, and not send the line yet; a command is sent at once."""
        chosen = self._chosen >= 0 and not self.text.startswith("/")
        self._close_offers()
        return chosen

    def offered(self, columns: int) -> list[Fragments]:
        """Return what is offered, a row each."""
        if self.files is not None and self.files.is_open:
            return self.files.lines(columns, _OFFERED)
        first = max(0, min(self._chosen - _OFFERED // 2, len(self._offers) - _OFFERED))
        return [
            [
                ("reverse" if number == self._chosen else "", f" {offer.shown or offer.text} "),
                ("dim", f" {offer.about}"),
            ]
            for number, offer in enumerate(self._offers)
            if first <= number < first + _OFFERED
        ]
