"""Passages of facts: what of a fact people can see and look for, as plain text in pieces. Pure.

Rule: the same fact gives the same pieces, so that a piece is known by the number of its row and its own in it. Results
that were told as JSON are read as their strings. What a recall has repeated is no passage of its own.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, Compacted, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, ModelSwitched, OptionChosen, Rewound, RuleRevoked, SessionChanged, SessionDeleted,
SessionOpened, ToolsChanged, TurnResumed, TurnSuspended, Unreadable.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

import msgspec

from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    ReplyCut,
    TurnEnded,
    TurnQuestioned,
    TurnStarted,
    effective,
)

RECALL: Final = "recall"
"""The tool that shows passages again."""

PassageKind = Literal["person", "answer", "call", "result", "note"]
"""Whose words they are: a line or a remark of the person; a reply; what a call asks for, and would change; what it has
shown; what the end of a turn says."""

_LONG: Final = 2_000
"""Characters of a piece: what is looked for together stands so near."""
_SHARED: Final = 100
"""Characters before a piece's end that the next one may have as well: a phrase is whole in one of them."""
_PATHS: Final = 1_000
"""Changed paths of one call that can be looked for."""
PIECES: Final = 2**16
"""Pieces of one fact that there may be."""


class Passage(NamedTuple):
    """A piece of what a fact says."""

    kind: PassageKind
    text: str


def passages_of(fact: Fact) -> Iterator[Passage]:
    """Yield what a fact says, in pieces, in order."""
    found = (Passage(kind, piece) for kind, text in _texts(fact) for piece in _pieces(text))
    return islice(found, PIECES)


def passage_at(fact: Fact, number: int) -> Passage | None:
    """Return one of them; None where it has no such."""
    return next(islice(passages_of(fact), number, None), None)


def _texts(fact: Fact) -> Iterator[tuple[PassageKind, str]]:
    match fact:
        case TurnStarted():
            yield "person", fact.text
        case Replied():
            yield "answer", "\n".join(_said(block) for block in fact.content)
        case ReplyCut():
            yield "answer", fact.text
        case CallStarted() if fact.tool != RECALL:
            yield "call", f"{fact.tool}\n{plain_text(effective(fact))}"
            yield "person", fact.remark
        case CallDecided():
            changes = fact.effects.changes if fact.effects is not None else ()
            yield "call", "\n".join(each.path for each in islice(changes, _PATHS))
            yield "person", fact.remark
        case CallEnded() if fact.tool != RECALL:
            yield "result", result_text(fact)
        case TurnQuestioned():
            yield "person", fact.remark
        case TurnEnded():
            yield "note", f"{fact.message}\n{fact.note}"
        case _:
            return


def result_text(ended: CallEnded) -> str:
    """Return what a call has shown, with what a command had printed that failed."""
    printed = (value for value in ended.details.values() if isinstance(value, str))
    content = plain_text(ended.content) if ended.form == "json" else ended.content
    return "\n".join(filter(None, (content, *printed, ended.note)))


def plain_text(document: str) -> str:
    """Return the strings and numbers of a JSON document, a line each; a text that is none as it is."""
    try:
        left: list[Any] = [msgspec.json.decode(document or '""')]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return document
    found = []
    while left:
        match left.pop():
            case str(text):
                found.append(text)
            case list(values):
                left += reversed(values)
            case dict(values):
                left += reversed(values.values())
            case bool() | None:
                continue
            case number:
                found.append(str(number))
    return "\n".join(found)


def _said(block: Mapping[str, Any]) -> str:
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _pieces(text: str) -> Iterator[str]:
    """Yield pieces that end where a word does, if one does."""
    at = 0
    while len(text) - at > _LONG:
        end = max(text.rfind(space, at + _LONG // 2, at + _LONG) for space in "\n ") + 1 or at + _LONG
        yield text[at:end]
        at = text.find(" ", end - _SHARED, end) + 1 or end
    if rest := text[at:].strip():
        yield rest
