"""Limits that a model's server tells of itself.

Rule: nobody waits for them. A model may learn them at any time after it was opened; what is asked of it meanwhile goes
by the catalogue.
"""

from typing import Final, NamedTuple, Protocol, runtime_checkable


class ServerLimits(NamedTuple):
    """What a server says of a model of its own, in tokens; 0 where it does not."""

    window: int = 0
    max_tokens: int = 0
    told: bool = True
    """False where the server tells no window, and requests are made for this one all the same."""


NOTHING_LEARNED: Final = ServerLimits()


@runtime_checkable
class LearningModel(Protocol):
    """A model whose server may say what it holds."""

    learned: ServerLimits
    """What it has said so far."""
