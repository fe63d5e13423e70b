"""Output that calls have printed so far, for those whose own answer never comes.

Rule: of what a tool shows while it runs, the beginning and the end are remembered until the call has its outcome. Where
the tool itself says what it printed, that counts.
"""

from typing import Final

import msgspec

from supervisor.journal.facts import CallEnded
from workers.shell.run.output import KeptOutput

OUTPUT: Final = "output"
"""The detail of an outcome that holds it."""

_OWN: Final = ("stdout", "stderr", OUTPUT)
_UNTOLD: Final = ("denied", "unknown_tool", "invalid_arguments")
"""Kinds that say nothing of what a call printed: it was not to run."""


class PartialOutput:
    """Of the calls of one session that run."""

    def __init__(self) -> None:
        self._kept: dict[str, KeptOutput] = {}

    def add(self, call: str, text: str) -> None:
        """Take what a call printed next."""
        self._kept.setdefault(call, KeptOutput()).add(text.encode("utf-8", "replace"))

    def completed(self, ended: CallEnded) -> CallEnded:
        """Return a call's end with what it had printed, where it does not say so itself; it is forgotten then."""
        kept = self._kept.pop(ended.call, None)
        if kept is None or ended.ok or ended.kind in _UNTOLD or any(name in ended.details for name in _OWN):
            return ended
        return msgspec.structs.replace(ended, details={**ended.details, OUTPUT: kept.text()})
