"""The price of one address: the bits that a model could say with it, against all that is known before. Pure.

Rule: a price is the length of a codeword, and all codewords together are a code (Kraft's inequality): whatever a model
and its listener agree on, at most 2^n addresses cost n bits or less. So what a session has paid bounds what it can have
said. There are several ways to say an address, and the cheapest one counts:

    next     the next link of a text whose links were followed last; of the latest four such texts
    again    an address that was fetched before
    link     another link of a known text: which text, the latest ones being likelier, and which of its n links: log2(n)
    composed from the beginning of a known address, word by word: known words, common ones, or letter by letter

How likely each way is, is what it has been so far in the session.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log2
from types import MappingProxyType
from typing import Final

from supervisor.tools.exfiltration.common_words import COMMON_BEGINNINGS, COMMON_WORDS
from supervisor.tools.exfiltration.known_addresses import TOKEN, Beginnings, KnownAddresses, LinkedText

COMPOSED: Final = "composed"
_LINK: Final = "link"
_AGAIN: Final = "again"
_LATEST: Final = "the latest again"
_NEXT: Final = ("next", "next of the second text", "next of the third text", "next of the fourth text")
_PRIOR: Final[Mapping[str, float]] = MappingProxyType(
    {COMPOSED: 1.0, _LINK: 1.0, _AGAIN: 0.25, _LATEST: 0.5, _NEXT[0]: 1.0, **dict.fromkeys(_NEXT[1:], 0.25)}
)
"""How often each way is taken to have been gone before the first address."""

_WORDS: Final = COMMON_WORDS | sys.stdlib_module_names

_AFTER_A_MARK: Final[Mapping[str, float]] = MappingProxyType(
    {"known": 18 / 64, "typed": 8 / 64, "public": 8 / 64, "common": 14 / 64, "letters": 6 / 64}
    | {"number": 4 / 64, "mark": 2 / 64, "escape": 1 / 64, "end": 3 / 64}
)
_AFTER_A_WORD: Final[Mapping[str, float]] = MappingProxyType(
    {"known": 1 / 64, "typed": 1 / 64, "public": 1 / 64, "common": 1 / 64, "letters": 1 / 64}
    | {"number": 2 / 64, "mark": 30 / 64, "escape": 1 / 64, "end": 10 / 64, "ending": 16 / 64}
)
"""How likely each kind of token is; the likelihoods sum up to one, and so do those below."""

_ENDING: Final = re.compile(r"(?<=[A-Za-z0-9])(\.[a-z]{1,5}|/)?\Z")
"""What a page's name may end with; it is said at once, after a word."""
_ENDINGS: Final[Mapping[str, int]] = MappingProxyType(
    {".html": 4, "/": 4, "": 4, ".md": 1, ".py": 1, ".htm": 1, ".txt": 1}
)
"""How often each is taken to have been seen before the first address."""

_MARKS: Final[Mapping[str, float]] = MappingProxyType(
    dict(zip("/-.+_=?&", (0.22, 0.22, 0.15, 0.12, 0.1, 0.07, 0.05, 0.05), strict=True))
)
_OTHER_MARK: Final = 0.02 / 64
_BLANK: Final = "%20"
_OTHER_ESCAPE: Final = 1 / 2 / 256 / 4
"""Half of all escapes are taken to be blanks; the two digits of the others may be small or capital."""

_SHARES: Final = "e127 t90 a81 o75 i69 n67 s63 h60 r59 d42 l40 c27 u27 m24 w23 f22 g20 y19 p19 b14 v9 k7 j1 x1 q1 z1"
"""How many of a thousand letters in English texts each is (Lewand, Cryptological Mathematics), rounded down."""
_LETTER: Final[Mapping[str, float]] = MappingProxyType(
    {share[0]: -log2(int(share[1:]) / 1000) for share in _SHARES.split()}
)
_GOES_ON: Final = -log2(7 / 8)
_STOPS: Final = -log2(1 / 8)
_LONGEST: Final = 400
"""Characters of an address that is looked at closely: this runs in the daemon's event loop."""
_SOURCES: Final = 5
"""Of beginnings."""
_DIGIT: Final = log2(10)
_FORMS: Final[Mapping[str, float]] = MappingProxyType({"lower": 11 / 16, "title": 1 / 4, "upper": 1 / 32})
_MIXED: Final = 1 / 32


@dataclass
class FetchHistory:
    """Where the fetches of a session have gone so far, and what they have paid since a person last said yes to more."""

    texts: list[int] = field(default_factory=list)
    """Numbers of known texts, that of the link that was followed last first."""
    fetched: dict[str, None] = field(default_factory=dict)
    """Addresses, the latest one last."""
    beginnings: Beginnings = field(default_factory=Beginnings)
    endings: Counter[str] = field(default_factory=lambda: Counter(_ENDINGS))
    ways: Counter[str] = field(default_factory=Counter)
    bits: float = 0.0
    addresses: int = 0
    composed: int = 0
    yeses: int = 0
    """How often a person let more go."""

    def copy(self) -> "FetchHistory":
        """Return another one that goes on from here."""
        texts, fetched, ways = self.texts.copy(), self.fetched.copy(), self.ways.copy()
        beginnings, endings = self.beginnings.copy(), self.endings.copy()
        return replace(self, texts=texts, fetched=fetched, beginnings=beginnings, endings=endings, ways=ways)

    def read(self, number: int, *, page: bool) -> None:
        """Note a new text with links; a page comes behind the text whose link led to it."""
        self.texts.insert(1 if page else 0, number)

    def went(self, address: str, known: KnownAddresses) -> None:
        """Note that an address is fetched."""
        holder = next(
            (each for each in self.texts if each in known.texts and address in known.texts[each].places), None
        )
        if holder is not None:
            self.texts.remove(holder)
            self.texts.insert(0, holder)
        self.fetched.pop(address, None)
        self.fetched[address] = None
        self.beginnings.add(address)
        self.endings[ending(address)] += 1


def priced(
    address: str, known: KnownAddresses, history: FetchHistory, origins: Sequence[str] = ()
) -> tuple[float, str]:
    """Return what an address in normal form costs, and the way that costs so; `origins` are those of allowed sites."""
    free = dict(_ways(address, known, history))
    if not free:
        free[COMPOSED] = _composed(address, known, history, origins)
    total = sum(_PRIOR.values()) + history.ways.total()
    costs = {way: bits - log2((_PRIOR[way] + history.ways[way]) / total) for way, bits in free.items()}
    way = min(costs, key=lambda each: costs[each])
    return costs[way], way


def _ways(address: str, known: KnownAddresses, history: FetchHistory) -> Iterator[tuple[str, float]]:
    """Yield the ways to an address that is known, and what is left to be said on each."""
    if address in history.fetched:
        place = next(at for at, each in enumerate(reversed(history.fetched)) if each == address)
        yield (_LATEST, 0.0) if place == 0 else (_AGAIN, log2(place * (place + 1)))
    holders = [(place, known.texts[each]) for place, each in enumerate(history.texts) if each in known.texts]
    for way, (_place, text) in zip(_NEXT, holders, strict=False):
        if address in text.places and _next_of(text, history.fetched) == address:
            yield way, 0.0
    found = [
        log2((place + 1) * (place + 2)) + log2(len(text.links)) for place, text in holders if address in text.places
    ]
    if found:
        yield _LINK, min(found)


def ending(address: str) -> str:
    """Return what the last name of an address ends with; "" where it is nothing usual."""
    found = _ENDING.search(address)
    return found[0] if found else ""


def _next_of(text: LinkedText, fetched: dict[str, None]) -> str | None:
    """Return the first link that was not followed, after the one that was followed last."""
    latest = next((text.places[each] for each in reversed(fetched) if each in text.places), -1)
    return next((each for each in text.links[latest + 1 :] if each not in fetched), None)


def _composed(address: str, known: KnownAddresses, history: FetchHistory, origins: Sequence[str]) -> float:
    """Return what it costs to compose an address: where it begins to be new, and what comes then."""
    if len(address) > _LONGEST:
        return 8.0 * len(address)
    tokens = [(found.start(), found[0]) for found in TOKEN.finditer(address)]
    allowed = frozenset(origins)
    rest = -log2(_kinds_after(tokens[-1][1])["end"])
    ends, best = len(address) - len(ending(address)), inf
    for at in reversed(range(len(tokens) + 1)):
        start = tokens[at][0] if at < len(tokens) else len(address)
        if at < len(tokens):
            rest += _token_bits(tokens[at][1], tokens[at - 1][1] if at else "/", known)
        if start == ends and (usual := history.endings[address[ends:]]) and address[ends - 1].isalnum():
            rest = min(rest, -log2(_AFTER_A_WORD["ending"] * usual / history.endings.total()))
        beginning = address[:start]
        likely = sum(
            (
                known.beginnings.likelihood(beginning),
                history.beginnings.likelihood(beginning),
                1 / len(allowed) if beginning in allowed else 0,
                1 / len(COMMON_BEGINNINGS) if beginning in COMMON_BEGINNINGS else 0,
                1.0 if beginning == "" else 0,
            )
        )
        if likely:
            best = min(best, rest - log2(likely / _SOURCES))
    return best


def _kinds_after(before: str) -> Mapping[str, float]:
    return _AFTER_A_WORD if before[-1:].isalnum() else _AFTER_A_MARK


def _token_bits(token: str, before: str, known: KnownAddresses) -> float:
    kinds = _kinds_after(before)
    return min(what - log2(kinds[kind]) for kind, what in _sayings(token, known))


def _sayings(token: str, known: KnownAddresses) -> Iterator[tuple[str, float]]:
    """Yield in which kinds of token this one can be said, and for how many bits."""
    if not token[0].isalnum():
        if len(token) > 1:
            yield "escape", 1.0 if token == _BLANK else -log2(_OTHER_ESCAPE)
        else:
            yield "mark", -log2(_MARKS.get(token, _OTHER_MARK))
        return
    if count := known.address_words.get(token):
        yield "known", -log2(count / known.words_in_addresses)
    lower, form = token.lower(), _form_bits(token)
    vocabularies: Iterable[tuple[str, Mapping[str, None] | frozenset[str]]] = (
        ("typed", known.typed_words),
        ("public", known.public_words),
        ("common", _WORDS),
    )
    for kind, words in vocabularies:
        if lower in words:
            yield kind, log2(len(words)) + form
    if token.isdigit():
        yield "number", len(token) * (_DIGIT + _GOES_ON) + _STOPS
    else:
        yield "letters", sum(_LETTER[each] + _GOES_ON for each in lower) + _STOPS + form


def _form_bits(token: str) -> float:
    """Return what it costs to say which letters of a word are capitals."""
    form = "lower" if token.islower() or token.isdigit() else "title" if token.istitle() else "upper"
    if form == "upper" and not token.isupper():
        return len(token) - log2(_MIXED)
    return -log2(_FORMS[form])
