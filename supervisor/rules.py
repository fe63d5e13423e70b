"""Rules: what the operator, or a person in a review, lets commands change without being asked. Data.

Rule: a rule speaks of effects that a rehearsal has found, never of what a command says it will do.
"""

import datetime as dt
from typing import Annotated, Literal

import msgspec

_Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of `[[rules]]`, or one that a person made in a review."""

    decision: Literal["allow", "ask", "deny"]
    programs: tuple[_Pattern, ...] | None = None
    """None: any program of the profile."""
    writes: tuple[_Pattern, ...] = ()
    """Paths that are added or changed, relative to the root, as patterns."""
    deletes: tuple[_Pattern, ...] = ()
    max_files: Annotated[int, msgspec.Meta(ge=0)] | None = None
    network: bool = False
    """Whether it also speaks of commands that tried the network."""
    reason: str = ""
    until: dt.date | None = None
    """The last day on which it counts."""
