"""Things that the person has done and chosen meanwhile, as the model is told with their next line. Pure."""

from supervisor.agent.blocks import mode_block, typed_block, undone_block
from supervisor.agent.models.model import Block
from supervisor.display.escape import one_line
from supervisor.journal.facts import UNKNOWN, CallDecided, CallEnded, CallStarted

_PATH = 200
"""Characters of the name of an undone change that the model is told."""


class Meanwhile:
    """Calls that they typed, changes that they have undone, and the mode, where it is another."""

    def __init__(self) -> None:
        self.mode = self._told_mode = UNKNOWN.mode
        self._undone, self._typed = dict[str, None](), list[Block]()

    def typed(self, started: CallStarted, ended: CallEnded) -> None:
        """Take a call into account that they typed."""
        self._typed.append(typed_block(started, ended))

    def undone(self, decided: CallDecided) -> None:
        """Take a call into account that has undone another."""
        changes = decided.effects.changes if decided.effects is not None else ()
        self._undone.update((one_line(each.path, _PATH), None) for each in changes)

    @property
    def told_before(self) -> list[Block]:
        """What holds on of what the model was told."""
        return [] if self._told_mode == UNKNOWN.mode else [mode_block(self._told_mode)]

    def take(self) -> list[Block]:
        """Return what the model is told now."""
        typed, self._typed = self._typed, []
        names, self._undone = list(self._undone), {}
        mode = [] if self.mode == self._told_mode else [mode_block(self.mode)]
        self._told_mode = self.mode
        return [*mode, *typed, *([undone_block(names)] if names else [])]
