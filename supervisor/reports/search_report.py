"""A search over all sessions, `strongroom search` and `/find`: where the journal holds some words, the newest first.

Rule: reading changes nothing but the index beside the journal. What was said is cut to where the words stand.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from supervisor.acp.extensions import FoundText, SearchParams
from supervisor.display.escape import visible
from supervisor.display.fragments import Fragments
from supervisor.errors import ConfigError
from supervisor.journal.facts import CallEnded, CallStarted
from supervisor.journal.index import utc
from supervisor.journal.journal import open_journal
from supervisor.journal.passages import PassageKind
from supervisor.journal.search_index import FoundPassage, SearchIndex, in_index
from supervisor.journal.search_words import Term, spans_of, terms_of

_WHO: Final[dict[PassageKind, str]] = {
    "person": "you",
    "answer": "model",
    "call": "model",
    "result": "tool",
    "note": "note",
}
_WIDTH: Final = 200
"""Characters that are shown of a passage."""
_BEFORE: Final = 60
"""Those before the first word of them that was looked for."""
_NO_WORDS: Final = (
    'Name a word to look for: letters or digits. "Quotes" hold words together, a star ends the beginning of one, and '
    "-word leaves out what has it."
)


def search(path: Path, params: SearchParams, stopped: Callable[[], bool] = lambda: False) -> list[FoundText]:
    """Return what the journal at `path` says of some words, the newest first; may take long, so call it in a thread.

    Raises:
        ConfigError: no word says what is wanted, or there is no such session.
        JournalError: the journal cannot be read.
        StrongroomError: the index cannot be written.
    """
    terms = terms_of(params.words)
    if all(each.excluded for each in terms):
        raise ConfigError(_NO_WORDS)
    if not path.exists():
        return []

    def find(index: SearchIndex) -> list[FoundPassage]:
        session = index.session_named(params.session_id) if params.session_id else ""
        return index.newest(terms, session=session, directory=params.directory, most=params.most)

    with open_journal(path) as journal:
        return [_shown(each, terms) for each in in_index(journal, find, stopped)]


def _shown(found: FoundPassage, terms: Sequence[Term]) -> FoundText:
    _row, entry, passage, title = found
    fact = entry.fact
    text, marks = excerpt(passage.text, terms)
    return FoundText(
        session_id=entry.session,
        title=title,
        turn=getattr(fact, "turn", 0),
        at=entry.at,
        who=_WHO[passage.kind],
        tool=fact.tool if isinstance(fact, CallStarted | CallEnded) else "",
        call=getattr(fact, "call", ""),
        text=text,
        marks=marks,
    )


def excerpt(text: str, terms: Sequence[Term]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the part of a text, on one line, where most of some terms stand, and where they do."""
    line = " ".join(text.split())
    spans = spans_of(line, terms)
    if len(line) > _WIDTH:
        first = max(spans, key=lambda span: _words_from(line, spans, span[0]), default=(0, 0))[0]
        start = max(0, min(first - _BEFORE, len(line) - _WIDTH))
        start = line.find(" ", start, first) + 1 or start if start else 0
        end = start + _WIDTH
        line = f"{'... ' if start else ''}{line[start:end].strip()}{' ...' if end < len(line) else ''}"
        spans = spans_of(line, terms)
    return line, tuple(spans)


def _words_from(line: str, spans: Sequence[tuple[int, int]], begin: int) -> int:
    """Return how many different words a part has that begins at one of them."""
    return len({line[at:end].casefold() for at, end in spans if begin <= at and end <= begin + _WIDTH - _BEFORE})


def lines(found: FoundText) -> tuple[str, Fragments]:
    """Return where something was found, and what was, its words in bold; visible."""
    turn = f"turn {found.turn}" if found.turn else "typed"
    who = f"{found.who}: {visible(found.tool)}" if found.tool else found.who
    said: Fragments = []
    at = 0
    for first, last in found.marks:
        said += [("", visible(found.text[at:first])), ("bold", visible(found.text[first:last]))]
        at = last
    return f"{visible(found.session_id)}  {utc(found.at)}  {turn}  {who}", [*said, ("", visible(found.text[at:]))]


def plain_lines(found: FoundText) -> str:
    """Return the same as text, with marks around the words."""
    where, said = lines(found)
    return f"{where}\n    " + "".join(f"\u00ab{text}\u00bb" if tone else text for tone, text in said)
