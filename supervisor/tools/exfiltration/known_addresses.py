"""Addresses and words that a session knows before an address is chosen: links of texts, in order, and public words.

Rule: whoever may write a text may have its links followed; which texts those are is said by who calls `learn`. All of
it is bounded, and taken apart only when the first address is priced: most sessions never fetch.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from supervisor.journal.facts import SourceKind
from workers.url import LENGTH, UrlError, parse

URL: Final = re.compile(r"https?://[^\s<>\"'`\\^{|}\[\]]+", re.IGNORECASE)
LINK: Final = re.compile(
    rf"{URL.pattern}|(?<![\w.-])(?:[\w-]{{1,63}}\.){{1,5}}[a-z]{{2,24}}/[^\s<>\"'`\\^{{|}}\[\]]+",
    re.IGNORECASE | re.ASCII,
)
"""The same, and what people write of one: github.com/o/r."""
ENDINGS: Final = ".,;:!?)*_"
"""What follows an address in a sentence, or in Markdown, and is not of it."""

TOKEN: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|%[0-9A-Fa-f]{2}|.", re.DOTALL)
"""What an address is made of: words, numbers, escapes, and single characters."""

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_CUT: Final = re.compile(r"(?<=[/?&=])|(?=[/?&])")
_PLAIN: Final = re.compile(r"https://(?:[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,5}[a-z]{2,24}/[\w/.~?&=+-]*", re.ASCII)
"""What is in normal form already, as nearly all links are."""
_LONGEST_WORD: Final = 24
_LINKS: Final = 5000
"""Links of one text that are known, the first ones."""
_TEXTS: Final = 256
_ADDRESSES: Final = 20_000
"""Addresses whose beginnings are known, the first ones."""
_CUTS: Final = 40
_WORDS: Final = 2**15
"""Words of public texts, the latest ones."""
_WHOLE: Final = 0.2
_LAST: Final = 0.35
"""How likely it is that an address goes on from the whole of a known one, or from all but its last part."""


class Beginnings:
    """What addresses begin with, and how likely a new one goes on from there. The likelihoods of all sum up to one."""

    def __init__(self) -> None:
        self._weights: dict[str, float] = {}
        self._addresses = 0

    def copy(self) -> "Beginnings":
        """Return another one that goes on from here."""
        other = Beginnings()
        other._weights, other._addresses = self._weights.copy(), self._addresses
        return other

    def add(self, address: str) -> None:
        if self._addresses >= _ADDRESSES:
            return
        self._addresses += 1
        cuts = [each.start() for each in _CUT.finditer(address, 8)][-_CUTS:]
        for place, cut in enumerate(sorted({8, len(address), *cuts}, reverse=True)):
            weight = (_WHOLE, _LAST)[place] if place < 2 else (1 - _WHOLE - _LAST) / 2 ** (place - 1)  # noqa: PLR2004
            self._weights[address[:cut]] = self._weights.get(address[:cut], 0) + weight

    def likelihood(self, beginning: str) -> float:
        """Return how likely a new address goes on from `beginning`; 0 where none has begun so."""
        return self._weights.get(beginning, 0) / self._addresses if self._addresses else 0.0


class LinkedText(NamedTuple):
    """The addresses in one text, in order, each with its place."""

    links: tuple[str, ...]
    places: dict[str, int]


class KnownAddresses:
    """What the texts of a session hold of addresses and of words for some."""

    def __init__(self) -> None:
        self.texts: dict[int, LinkedText] = {}
        """By number; those of an early text go."""
        self.typed: dict[str, None] = {}
        """Addresses that the person typed."""
        self.beginnings = Beginnings()
        self.typed_words: dict[str, None] = {}
        self.public_words: dict[str, None] = {}
        self.address_words: Counter[str] = Counter()
        """Of addresses, and how often each stands there."""
        self.words_in_addresses = 0
        self._taken: set[str] = set()
        self._number = 0

    def learn(self, text: str, author: SourceKind) -> int | None:
        """Take a text into account whose links may be followed; return its number, None where it holds no link."""
        if author != "file":
            self._learn_words(text, self.typed_words if author == "person" else self.public_words)
        links = tuple(dict.fromkeys(_links(text)))[:_LINKS]
        if author == "person":
            self.typed.update(dict.fromkeys(links))
        for each in links:
            self.know(each)
        if not links:
            return None
        self._number += 1
        self.texts[self._number] = LinkedText(links, {link: place for place, link in enumerate(links)})
        if len(self.texts) > _TEXTS:
            del self.texts[next(iter(self.texts))]
        return self._number

    def know(self, address: str) -> None:
        """Take the beginnings and the words of an address into account."""
        if address in self._taken or len(self._taken) >= _ADDRESSES:
            return
        self._taken.add(address)
        self.beginnings.add(address)
        words = _WORD.findall(address)[:_CUTS]
        self.address_words.update(words)
        self.words_in_addresses += len(words)

    def _learn_words(self, text: str, words: dict[str, None]) -> None:
        for word in dict.fromkeys(_WORD.findall(text)):
            if len(word) <= _LONGEST_WORD:
                words.setdefault(word.lower())
        while len(words) > _WORDS:
            del words[next(iter(words))]


def normal(address: str) -> str | None:
    """Return an address as it is compared, and fetched; None where it is none that could be."""
    if len(address) <= LENGTH and _PLAIN.fullmatch(address):
        return address
    try:
        return str(parse(address))
    except UrlError:
        return None


def _links(text: str) -> Iterator[str]:
    """Yield the addresses of a text, in normal form."""
    for found in LINK.findall(text):
        link = found.rstrip(ENDINGS)
        forms = [link, f"{link})"] if link.count("(") > link.count(")") and found.startswith(f"{link})") else [link]
        for each in forms:
            known = normal(each if "://" in each else f"https://{each}")
            if known is not None:
                yield known
