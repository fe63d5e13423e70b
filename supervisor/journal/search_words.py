"""Words that somebody looks for: as they typed them, as FTS5 is asked for them, and where they stand in a text. Pure.

Rule: nothing that is typed is query syntax of the database: each term goes there as a quoted string. What people may
write are a "phrase in quotes", the beginning of a word with a star, and -word for passages without it. Patterns of all
of Unicode take milliseconds to compile, and are when the first one is asked for.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

_TYPED: Final = 1_000
"""Characters of what is typed that count."""
_TERMS: Final = 32
"""Terms of it that do."""
_TERM: Final = re.compile(r'(-?)(?:"([^"]*)(?:"|$)|([^\s"]+))')
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_EAST_ASIAN: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts without spaces between words: each character counts as one."""


class _Patterns(NamedTuple):
    unquoted: re.Pattern[str]
    run: re.Pattern[str]
    joined: re.Pattern[str]
    word: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    return _Patterns(
        re.compile(r'[\x00-\x1f\x7f"\ud800-\udfff]+'),
        re.compile(f"[{_EAST_ASIAN}]+|[^{_EAST_ASIAN}]+"),
        re.compile(rf"[{_EAST_ASIAN}]+|[A-Za-z][a-z0-9]*[A-Z][A-Za-z0-9]+|[A-Z]+[a-z][A-Za-z0-9]*"),
        re.compile(rf"[{_EAST_ASIAN}]|[^\W_{_EAST_ASIAN}]+"),
    )


class Term(NamedTuple):
    """One word, or several that follow each other."""

    text: str
    begins: bool = False
    """Whether the last word may go on."""
    excluded: bool = False

    def query(self) -> str:
        """Return it as FTS5 is asked for it."""
        patterns = _patterns()
        found = [run for run in patterns.run.findall(self.text) if patterns.word.search(run)]
        runs = [" ".join(run) if run[0] > "\u303f" else run for run in found]
        quoted = [f'{{text parts}} : "{run}"' for run in runs]
        return f"({' AND '.join(quoted)}{' *' if self.begins else ''})"


def terms_of(typed: str) -> tuple[Term, ...]:
    """Return the terms of what somebody has typed; none where no letter or digit is in it."""
    return tuple(dict.fromkeys(_terms(typed[:_TYPED])))[:_TERMS]


def _terms(typed: str) -> Iterator[Term]:
    for minus, phrase, word in _TERM.findall(typed):
        text = _patterns().unquoted.sub(" ", phrase or word)
        if _patterns().word.search(text):
            yield Term(text.rstrip("*") if word else text, word.endswith("*"), bool(minus))


def query_of(terms: Iterable[Term], places: Sequence[str] = ()) -> str:
    """Return what FTS5 is asked for all of some terms at some places; "" where no term says what is wanted."""
    listed = [*terms]
    wanted = [each.query() for each in listed if not each.excluded]
    if not wanted:
        return ""
    query = " AND ".join([*wanted, *(f'(place : "{place}")' for place in places)])
    without = " OR ".join(each.query() for each in listed if each.excluded)
    return f"({query}) NOT ({without})" if without else query


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return _patterns().word.findall(text)


def parts_of(text: str) -> str:
    """Return what of a text can be found besides its words: parts of words in camelCase, single characters."""
    found = dict.fromkeys(_patterns().joined.findall(text))
    return " ".join(" ".join(each) if each[0] > "\u303f" else _HUMP.sub(" ", each) for each in found)


def spans_of(text: str, terms: Iterable[Term]) -> list[tuple[int, int]]:
    """Return where terms stand in a text, in order: from which character to which; none overlaps another."""
    patterns = [r"[\W_]*?".join(map(re.escape, words_of(_folded(each.text)))) for each in terms if not each.excluded]
    if not patterns:
        return []
    found = re.finditer("|".join(sorted(patterns, key=len, reverse=True)), _folded(text))
    return [each.span() for each in found if each.end() > each.start()]


def _folded(text: str) -> str:
    """Return a text without case and accents, as long as it was."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFD", char)[0].lower()[:1] or char for char in text)
