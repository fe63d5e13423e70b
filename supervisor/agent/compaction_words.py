"""A compaction in words, for people. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from supervisor.agent.amount import UNIT, tokens_in
from supervisor.display.escape import one_line
from supervisor.journal.facts import Compacted, CompactionCause, SummaryFailure

_NAME: Final = 200
_CAUSES: Final[Mapping[CompactionCause, str]] = MappingProxyType(
    {
        "near": "it came near the model's window",
        "full": "the model's server said that it is too long",
        "asked": "as was asked for",
    }
)
_FAILURES: Final[Mapping[SummaryFailure, str]] = MappingProxyType(
    {
        "no_reply": "it gave no reply",
        "timeout": "it took too long",
        "budget": "no budget holds its request",
        "cut": "its reply was cut",
        "called_tools": "it called tools instead",
        "empty": "its reply was empty",
        "nonsense": "its reply was no text",
        "too_long": "its reply was too long",
    }
)


def compaction_notice(fact: Compacted) -> str:
    """Return what people are told of a compaction, one sentence or two: its cause, its size, its summary, its cost."""
    by = f" by {one_line(fact.by, _NAME)}" if fact.by else ""
    said = f"The conversation was compacted{by}, {_CAUSES[fact.because]}: "
    said += f"about {fact.after} tokens in place of {fact.before}. The person's lines stay as they were."
    model = one_line(fact.model, _NAME)
    if fact.failure in _FAILURES:
        said += f" {model} has written no summary: {_FAILURES[fact.failure]}."
    elif fact.summary:
        said += f" {model} has written a summary of {len(fact.summary)} characters."
    return said + _cost(fact)


def _cost(fact: Compacted) -> str:
    used = tokens_in(fact.usage)
    money = f", {fact.cost / UNIT:.6g} of the budgets' currency" if fact.cost else ""
    return f" That took {used} tokens{money}." if used else ""
