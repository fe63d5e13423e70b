"""Links (OSC 8) in what is shown for good: addresses in answers, and changed files above their differences.

Rule: a link's text is its target, as it was written or as it lies beneath the root; nothing that a tool has printed is
looked at, and nothing is linked that is not whole. They are for terminals that are known to take them, or where the
configuration says so.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from supervisor.acp.extensions import ChangedName
from supervisor.clients.console.shown import Document, Lines, ShownCall
from supervisor.display.differences import LETTERS
from supervisor.display.escape import name
from supervisor.display.fragments import Fragments

_TAKEN_BY: Final[Mapping[str, str]] = {
    "TERM": r"xterm-kitty|xterm-ghostty|foot|alacritty|wezterm|contour",
    "TERM_PROGRAM": r"iTerm\.app|WezTerm|vscode|ghostty|rio|Tabby",
    "VTE_VERSION": r"[5-9]\d{3}|\d{5}",
    "KONSOLE_VERSION": r"\d{6}",
    "WT_SESSION": r".",
}
"""Variables by which terminals are known that take links. Source: github.com/Alhadis/OSC8-Adoption."""
_WITHIN: Final = re.compile(r"tmux|screen|linux|dumb")
"""TERM of what stands between, or takes nothing."""
_ADDRESS: Final = re.compile(r"https?://[\w.~:/?#\[\]@!$&'()*+,;=%-]++(?![^\x00-\x7f]|\\)", re.ASCII)
"""One that goes on with another character, or one that was escaped, is not whole."""
_ENDINGS: Final = ".,;:!?)]'*_~"
"""What may follow an address in a sentence, or end a piece of Markdown."""
_LONGEST: Final = 2000
"""Characters of an address, as terminals take them. Source: the specification of OSC 8, by Egmont Koblinger."""
_LINKED: Final = 200
"""Files of one item that are looked for."""


def takes_links(variables: Mapping[str, str], wanted: Literal["auto", "always", "never"]) -> bool:
    """Say whether the terminal that variables tell of is to get links."""
    if wanted != "auto" or _WITHIN.match(variables.get("TERM", "")):
        return wanted == "always"
    return any(re.match(pattern, variables.get(name, "")) for name, pattern in _TAKEN_BY.items())


def link(target: str, text: str) -> str:
    """Return a text that leads somewhere; both are safe already."""
    return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"


class Links:
    """The links of one console.

    Args:
        root: gives the session's root; "" before there is one.
    """

    def __init__(self, root: Callable[[], str]) -> None:
        self._root = root
        self._heard: set[str] = set()
        """The addresses of the answer, whole."""
        self._rest = ""

    def hear(self, text: str) -> None:
        """Take a piece of the answer; "" at its end."""
        *words, self._rest = re.split(r"\s", self._rest + text) if text else (self._rest, "")
        self._heard |= {each for word in words if "://" in word for each in _addresses(word)}

    def forget(self) -> None:
        """Begin another answer."""
        self._heard, self._rest = set(), ""

    def of_answer(self, rendered: str) -> str:
        """Return a part of the answer, with the terminal's codes, and links at addresses that are whole in it."""

        def linked(found: re.Match[str]) -> str:
            address = found[0].rstrip(_ENDINGS)
            return link(address, address) + found[0][len(address) :] if address in self._heard else found[0]

        return _ADDRESS.sub(linked, rendered) if self._heard else rendered

    def targets(self, item: Lines) -> dict[str, tuple[str, str]]:
        """Return what heads the differences of an item, each with the file's name as it is shown and its address."""
        changes = item.differences if isinstance(item, ShownCall | Document) else ()
        return dict(self._targets(changes[:_LINKED]))

    def _targets(self, changes: Sequence[ChangedName]) -> Iterable[tuple[str, tuple[str, str]]]:
        root = self._root()
        top = os.path.realpath(root) if root and changes else ""
        for change in changes:
            found = os.path.realpath(os.path.join(root, change.path)) if top and "\0" not in change.path else ""
            if found.startswith(f"{top.rstrip('/')}/") and os.path.exists(found):
                shown = name(change.path)
                yield f"{LETTERS.get(change.what, ('', '?'))[1]} {shown}", (shown, Path(root, change.path).as_uri())


def with_link(line: Fragments, text: str, targets: Mapping[str, tuple[str, str]]) -> str:
    """Return a line's text, with the terminal's codes, and a link where it heads the difference of one of the files."""
    head = next((piece for tone, piece in line if tone == "bold"), "") if targets else ""
    shown, target = targets.get(head, ("", ""))
    return text.replace(head, f"{head[:2]}{link(target, shown)}", 1) if target else text


def _addresses(word: str) -> Iterable[str]:
    found = (each.rstrip(_ENDINGS) for each in _ADDRESS.findall(word))
    return (each for each in found if len(each) <= _LONGEST)
