"""A command on an overlay of the root, and what is proposed of it.

Rule: one rehearsal at a time, on a file system of its own, which the worker mounts before the command and lets go of
when it is decided: then nothing of what was not committed is left, in memory or elsewhere.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import msgspec

from workers.changes.effects import Effects
from workers.commit.outcome_text import committed
from workers.confine import mounts
from workers.confine.mounts import NO_DEVICES, NO_SUID
from workers.errors import CannotRehearse
from workers.shell.command_runner import CommandRunner
from workers.shell.git_index import is_index, same
from workers.shell.run.rehearsal import Rehearsal
from workers.shell.sandbox.private_root import HELD, LAYERS, in_memory
from workers.tool import Proposal, Replaced, Result, ResultWithNote

_LARGEST_INDEX: Final = 2**26
"""Bytes of git's index that are looked through."""


class CommandOverlay:
    """The overlay of one command."""

    def __init__(self, engine: CommandRunner) -> None:
        """Begin, before the command is started.

        Raises:
            CannotRehearse: there is no overlay here, and why.
        """
        with ExitStack() as stack:
            root = os.open(HELD, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            try:
                mounts.new("tmpfs", LAYERS, NO_SUID | NO_DEVICES, in_memory(engine.layout.scratch_mb))
            except OSError as error:
                raise CannotRehearse(f"there is no room for its changes: {error.strerror}") from error
            stack.callback(mounts.detach, LAYERS)
            self.rehearsal = Rehearsal(root, HELD, LAYERS)
            stack.callback(self.rehearsal.layer.close)
            self._held = stack.pop_all()
        self.engine: Final = msgspec.structs.replace(engine, place=self._show, filter=engine.overlay_filter)
        """For the command."""

    def changed(self, effects: Effects) -> bool:
        """Say whether there is anything in the effects that is worth a commit."""
        if effects.totals != {"modified": 1} or not effects.changes or not is_index(effects.changes[0].path):
            return bool(effects.totals)
        change = effects.changes[0]
        versions = self.rehearsal.layer.versions(change.path, _LARGEST_INDEX)
        modes = {each.mode for each in (change.before, change.after) if each}
        return versions is None or len(modes) > 1 or not same(*versions)

    def close(self) -> None:
        """Let go of everything that was not committed."""
        self._held.close()

    def _show(self, path: str) -> None:
        """Show the overlay as the root: the `Place` of this command.

        Raises:
            CannotRehearse: it cannot be mounted, and why.
            OSError: its layers cannot be hidden.
        """
        self.rehearsal.mount(path)
        mounts.detach(LAYERS)


class CommandProposal(Proposal):
    """A command that has run on an overlay; what it printed is returned once its changes are committed."""

    def __init__(self, effects: Effects, overlay: CommandOverlay, result: ResultWithNote) -> None:
        """Take the overlay over: it is closed with the decision."""
        super().__init__(effects)
        self._overlay = overlay
        self._result = result

    def originals(self, each: int, total: int) -> Iterator[Replaced | bytes]:
        """Read what a commit would change."""
        return self._overlay.rehearsal.layer.originals(each, total)

    def commit(self) -> Result:
        """Apply exactly these effects to the root, and return what the command printed."""
        try:
            remark = committed(self._overlay.rehearsal.layer.commit(), "Run it again.")
        finally:
            self._overlay.close()
        value: Any = self._result.value
        return ResultWithNote(value, "; ".join(filter(None, (self._result.note, remark))))

    def discard(self) -> None:
        """Let go of the effects."""
        self._overlay.close()
