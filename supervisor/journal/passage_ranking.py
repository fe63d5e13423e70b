"""Passages of one conversation, ranked by how well they fit some words.

Rule: nothing but the conversation counts: how rare a word is, is how rare it is there. A passage that has more of the
words, and rarer ones, comes first; then one that has them near each other, then the newer one. Not all must be there:
whoever asks has forgotten how it was said.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from supervisor.journal.journal import JournalEntry
from supervisor.journal.passages import Passage
from supervisor.journal.search_index import SearchIndex, fact_of, passage_in
from supervisor.journal.search_words import Term, spans_of, terms_of, words_of

_WORDS: Final = 24
"""Words that are looked up."""
_LOOKED_AT: Final = 60
"""Passages that are read to be ranked."""
_STEM: Final = 5
"""Letters of a word whose ending may be another."""
_ENDINGS: Final = ("ings", "ing", "ers", "er", "ies", "es", "ed", "en", "s", "e", "y", "n")
_LESS: Final = 0.6
"""What a word counts that ends otherwise."""
_NEAR: Final = 200
"""Characters within which words stand near each other."""


class RankedPassage(NamedTuple):
    """A passage with its fact."""

    entry: JournalEntry
    passage: Passage


def best_passages(index: SearchIndex, entries: Sequence[JournalEntry], typed: str, most: int) -> list[RankedPassage]:
    """Return the passages of a conversation's entries that fit what was typed best, so many at most, each text once."""
    known, sessions = {each.seq: each for each in entries}, dict.fromkeys(each.session for each in entries)

    def rows(term: Term | None) -> set[int]:
        return {row for session in sessions for row in index.matching(session, term) if fact_of(row) in known}

    terms = [each for each in terms_of(typed) if not each.excluded]
    wanted = dict.fromkeys([*terms, *(Term(word) for each in terms for word in words_of(each.text))])
    weights, count = dict[int, float](), len(rows(None))
    for term in [*wanted][:_WORDS]:
        exact, stem = rows(term), _stem(term)
        alike = rows(stem) - exact if stem is not None else set[int]()
        rarity = math.log(1 + count / max(1, len(exact) + len(alike)))
        for row in exact | alike:
            weights[row] = weights.get(row, 0.0) + rarity * (1 if row in exact else _LESS)
    best = sorted(weights, key=lambda row: (weights[row], row), reverse=True)[:_LOOKED_AT]
    read = {row: passage for row in best if (passage := passage_in(known[fact_of(row)], row)) is not None}
    marked = [*filter(None, map(_stem, wanted)), *wanted]
    order = sorted(read, key=lambda row: (weights[row] * (1 + _nearness(read[row].text, marked)), row), reverse=True)
    different = {read[row].text: row for row in reversed(order)}  # the best of each text
    return [RankedPassage(known[fact_of(row)], read[row]) for row in order if different[read[row].text] == row][:most]


def _stem(term: Term) -> Term | None:
    """Return how a word begins whose ending may be another; None where that says too little."""
    if " " in term.text or len(term.text) < _STEM or not term.text.isalpha():
        return None
    text = term.text.casefold()
    ending = next((each for each in _ENDINGS if text.endswith(each) and len(text) - len(each) >= _STEM - 1), "")
    return Term(text.removesuffix(ending), begins=True)


def _nearness(text: str, terms: Iterable[Term]) -> float:
    """Return, from 0 to 1, which part of the words in a passage stand near each other."""
    spans = [(at, text[at:end].casefold()) for at, end in spans_of(text, terms)]
    near = max((len({word for at, word in spans if begin <= at < begin + _NEAR}) for begin, _ in spans), default=0)
    return near / max(1, len({word for _, word in spans}))
