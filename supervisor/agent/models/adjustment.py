"""A change of requests for servers that refuse them as they are.

Rule: pure. A format has a row for each thing that is known to be refused; nothing is left out before a server has said
that it does not take it (`remote_model.py`).
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

Json = dict[str, Any]
"""A request's body, or a message in it."""

_LONGEST: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_USUAL: Final = 4096
"""Tokens of the longest reply of many a model."""


class Adjustment(NamedTuple):
    """What is refused, and what is sent in its place."""

    refusal: re.Pattern[str]
    """How servers say so."""
    adjusted: Callable[[Json], Json]
    """Returns a body, changed; the same object where there is nothing to change."""
    lasting: bool = True
    """Whether other conversations are sent so, too."""
    unbounded: bool = False
    """Whether replies may then be longer than what a budget has reserved for them."""

    def helps(self, refused: str, body: Json) -> bool:
        """Say whether a body that was refused in these words may be taken, once it is adjusted."""
        return self.refusal.search(refused) is not None and self.adjusted(body) is not body


def row(refusal: str, adjusted: Callable[[Json], Json], *, lasting: bool = True, unbounded: bool = False) -> Adjustment:
    """Return the adjustment for a refusal that reads so, in large or small letters."""
    return Adjustment(re.compile(refusal, re.IGNORECASE), adjusted, lasting, unbounded)


def of_usual_length(body: Json) -> Json:
    """Return a body whose reply is no longer than the longest of many a model."""
    shorter = {name: _USUAL for name in _LONGEST if body.get(name, 0) > _USUAL}
    return {**body, **shorter} if shorter else body


def without(name: str, body: Json) -> Json:
    """Return a body, or a message, without a field."""
    return {key: value for key, value in body.items() if key != name} if name in body else body
