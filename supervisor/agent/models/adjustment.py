"""A change of requests for servers that refuse them as they are.

Rule: pure. A format has a row for each thing that is known to be refused; nothing is left out before a server has said
that it does not take it (`remote_model.py`).
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]
"""A request's body, or a message in it."""


class Adjustment(NamedTuple):
    """What is refused, and what is sent in its place."""

    refusal: re.Pattern[str]
    """How servers say so."""
    adjusted: Callable[[Json], Json]
    """Returns a body, changed; the same object where there is nothing to change."""
    lasting: bool = True
    """Whether other conversations are sent so, too."""


def row(refusal: str, adjusted: Callable[[Json], Json], *, lasting: bool = True) -> Adjustment:
    """Return the adjustment for a refusal that reads so, in large or small letters."""
    return Adjustment(re.compile(refusal, re.IGNORECASE), adjusted, lasting)


def without(name: str, body: Json) -> Json:
    """Return a body, or a message, without a field."""
    return {key: value for key, value in body.items() if key != name} if name in body else body
