"""Passages of one session, ranked by how well they fit some words.

Rule: nothing but the session counts: how rare a word is, is how rare it is there. A passage that has more of the words,
and rarer ones, comes first; then one that has them near each other, then the newer one. Not all must be there: whoever
asks has forgotten how it was said.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from supervisor.journal.search_index import FoundPassage, SearchIndex
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


def best_passages(index: SearchIndex, session: str, typed: str, most: int) -> list[FoundPassage]:
    """Return the passages of a session that fit what was typed best, so many at most, each text once."""
    terms = [each for each in terms_of(typed) if not each.excluded]
    weights = dict[int, float]()
    count = sum(1 for _ in index.matching(session))
    wanted = dict.fromkeys([*terms, *(Term(word) for each in terms for word in words_of(each.text))])
    for term in [*wanted][:_WORDS]:
        exact = set(index.matching(session, term))
        stem = _stem(term)
        alike = set(index.matching(session, stem)) - exact if stem is not None else set[int]()
        if not (exact or alike):
            continue
        rarity = math.log(1 + count / (len(exact) + len(alike)))
        for row in exact | alike:
            weights[row] = weights.get(row, 0.0) + rarity * (1 if row in exact else _LESS)
    best = sorted(weights, key=lambda row: (weights[row], row), reverse=True)[:_LOOKED_AT]
    found = {each.row: each for each in index.passages(best)}
    known = [*filter(None, map(_stem, wanted)), *wanted]
    order = sorted(found, key=lambda row: (weights[row] * (1 + _nearness(found[row], known)), row), reverse=True)
    return [*_different(found[row] for row in order)][:most]


def _stem(term: Term) -> Term | None:
    """Return how a word begins whose ending may be another; None where that says too little."""
    if " " in term.text or len(term.text) < _STEM or not term.text.isalpha():
        return None
    text = term.text.casefold()
    ending = next((each for each in _ENDINGS if text.endswith(each) and len(text) - len(each) >= _STEM - 1), "")
    return Term(text.removesuffix(ending), begins=True)


def _nearness(found: FoundPassage, terms: Iterable[Term]) -> float:
    """Return, from 0 to 1, which part of the words in a passage stand near each other."""
    text = found.passage.text
    spans = [(at, text[at:end].casefold()) for at, end in spans_of(text, terms)]
    near = max((len({word for at, word in spans if begin <= at < begin + _NEAR}) for begin, _ in spans), default=0)
    return near / max(1, len({word for _, word in spans}))


def _different(found: Iterable[FoundPassage]) -> Iterator[FoundPassage]:
    seen = set[str]()
    for each in found:
        if each.passage.text not in seen:
            seen.add(each.passage.text)
            yield each
