"""Files in the order in which they fit a few typed letters. Pure.

Rule: a file fits that has the letters in its path, in this order and in either case. The first line that holds of it is
its rank; within a rank shorter paths come first, then by the alphabet.

    its name is what was typed            its path has a component that begins so
    its name begins so                    its path has it
    a word of its name begins so          its letters stand apart: first where they begin words, then in fewer pieces
    its name has it                       and in the name

What was typed may have slashes; then its last component is meant by "name", and the others stand right before that.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

_BETWEEN: Final = "/_. -"
"""What stands between words."""
_RANKS: Final = (r"/{}\Z", r"/{}[^/]*\Z", rf"[{_BETWEEN}]{{}}[^/]*\Z", r"{}[^/]*\Z", "/{}", "{}")
"""Of paths that begin with a slash, as `folded` makes them: then these begin with what can be searched for at once."""
_APART: Final = 2000
"""Files whose letters stand apart of which the pieces are counted, the shortest."""


def folded(text: str) -> str:
    """Return a text as it is compared: without case, its accents composed."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text.casefold())


class OrderedFiles:
    """The files of one listing; what was found last is where those are looked for that fit more letters."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(sorted(paths), key=len)
        self._folded = [folded(f"/{path}") for path in self._paths]
        self._last: tuple[str, Sequence[int]] = ("", range(len(self._paths)))

    def __len__(self) -> int:
        return len(self._paths)

    def first(self, typed: str, most: int) -> list[str]:
        """Return the files that fit best, at most so many."""
        typed, texts = folded(typed), self._folded
        fitting = self._fitting(typed)
        whole = [each for each in fitting if typed in texts[each]]
        found: dict[int, None] = {}
        for rank in _RANKS:
            fits = re.compile(rank.format(re.escape(typed))).search
            hits = (each for each in whole if each not in found and fits(texts[each]))
            found |= dict.fromkeys(islice(hits, most - len(found)))
        if len(found) < most:
            apart = list(islice((each for each in fitting if each not in found), _APART))
            apart.sort(key=lambda each: pieces(texts[each], typed))
            found |= dict.fromkeys(apart)
        return [self._paths[each] for each in found][:most]

    def _fitting(self, typed: str) -> Sequence[int]:
        before, among = self._last
        if not typed.startswith(before):
            among = range(len(self._paths))
        if typed != before:
            in_order = "".join(f"[^{each}]*+{each}" for each in map(re.escape, typed))
            fits, texts = re.compile(in_order).match, self._folded
            among = [each for each in among if fits(texts[each])]
        self._last = (typed, among)
        return among


def pieces(path: str, typed: str) -> tuple[int, int, int]:
    """Return in how many pieces the letters stand in a folded path, and how far before its name they begin.

    First comes how many of the pieces begin within a word. Each letter is looked for from the end, so that the name has
    as many as it can.
    """
    at = len(path)
    places = [at := path.rindex(letter, 0, at) for letter in reversed(typed)]
    begins = [each for each in places if each - 1 not in places]
    within = sum(path[each] != "/" and path[each - 1] not in _BETWEEN for each in begins)
    return within, len(begins), max(0, path.rfind("/") - at)
