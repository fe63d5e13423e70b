"""Output of calls so far, and since when they run: for those whose own answer never comes.

Rule: of what a tool shows while it runs, the beginning and the end are remembered until the call has its outcome. Where
the tool itself says what it printed, or how long it took, that counts.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from supervisor.journal.facts import CallEnded
from workers.shell.run.output import KeptOutput

OUTPUT: Final = "output"
"""The detail of an outcome that holds it."""

_OWN: Final = ("stdout", "stderr", OUTPUT)
_UNTOLD: Final = ("denied", "unknown_tool", "invalid_arguments")
"""Kinds that say nothing of what a call printed: it was not to run."""

_CUT_OFF: Final = ("cancelled", "outcome_unknown")
"""Kinds that do not say how long it ran."""


class PartialOutput:
    """Of the calls of one session that run.

    Args:
        clock: tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: dict[str, KeptOutput] = {}
        self._began: dict[str, float] = {}
        self._clock = clock

    def begin(self, call: str) -> None:
        """Note that a call runs from now on."""
        self._began[call] = self._clock()

    def add(self, call: str, text: str) -> None:
        self._kept.setdefault(call, KeptOutput()).add(text.encode("utf-8", "replace"))

    def completed(self, ended: CallEnded) -> CallEnded:
        """Return a call's end with what it had printed and its time, where it does not say so; both are forgotten."""
        kept, began = self._kept.pop(ended.call, None), self._began.pop(ended.call, None)
        if ended.ok or ended.kind in _UNTOLD:
            return ended
        if began is not None and ended.kind in _CUT_OFF:
            seconds = round(self._clock() - began, 6)
            content = f"{ended.content} That was {seconds:.3g} s after it began."
            ended = msgspec.structs.replace(ended, content=content, seconds=seconds)
        if kept is None or any(name in ended.details for name in _OWN):
            return ended
        return msgspec.structs.replace(ended, details={**ended.details, OUTPUT: kept.text()})
