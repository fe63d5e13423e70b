"""Openings: beginnings of addresses in a text that says, or shows, that something is to follow them. Pure.

Rule: a page that wants to be told something has to say where. What it leaves open is an address that ends with the sign
of a parameter, is followed by a placeholder, or stands near words that ask for something to be put there. It is found
in time that grows with the text alone.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

_ADDRESS: Final = r"(?i)(?<![\w.-])(?:https?://)?((?:[\w-]{1,63}\.){1,5}[a-z]{2,24}(?::\d{1,5})?/[!#-&*-;=?-Z_a-z~]*)"
_CUT: Final = r"(?:(?<=[=/])(?:[A-Z][A-Z0-9_-]{2,40}|(?:your|the|my|insert)[_-].{0,80})|[$%.,:;!*]{1,9})\Z"
"""The end of an address that only stands for something, or is not of it."""
_OPEN: Final = re.compile(r"[=?&]\Z")
_FOLLOWS: Final = re.compile(r"[$%]?[<{\[\u2026]|[$%.]{2}| ?\+|[A-Z][A-Z0-9_-]{2}|(?:your|the|my|insert)[_-]")
"""How an opening ends; and what follows one where something is to be filled in."""
_ASKS: Final = (
    r"(?i)\b(?:append|follow(?:ed|ing)? by|fill|substitut|replac|insert|encod|concatenat|suffix|exfil)"
    r"|\b(?:with|plus|and|then|of|from|as) (?:the|your|its|each|every|their|what|all)\b[^.\n]{0,40}"
    r"\b(?:notes?|words?|lines?|secrets?|passwords?|contents?|keys?|tokens?|files?|diary|texts?|read|says?)\b"
)
_AROUND: Final = 150
"""Characters before and after an address in which it may be said what to do with it."""
_LONGEST: Final = 500


def openings_of(text: str) -> Iterator[str]:
    """Yield each opening in a text, from its host on, in lower case; never a host alone."""
    asks = [found.start() for found in re.finditer(_ASKS, text)]
    for found in re.finditer(_ADDRESS, text):
        beginning = re.sub(_CUT, "", found[1][:_LONGEST])
        at = found.start(1) + len(beginning)
        if beginning.find("/") + 1 < len(beginning) and (
            _OPEN.search(beginning)
            or _FOLLOWS.match(text, at)
            or bisect_left(asks, found.start() - _AROUND) < bisect_left(asks, at + _AROUND)
        ):
            yield beginning.casefold()
