"""The overlay of one command, and what is proposed of it.

Rule: one rehearsal at a time, on a file system of its own, which the worker mounts before the command and lets go of
when it is decided: then nothing of what was not committed is left, in memory or elsewhere.
"""

import errno
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

import msgspec

from workers.changes.effects import Effects, NodeState
from workers.commit.upper_layer import LayerProposal, UpperLayer
from workers.confine import mounts
from workers.confine.mounts import NO_DEVICES, NO_SUID
from workers.errors import CannotRehearse, TooMuch
from workers.shell.cache_layers import CacheLayers
from workers.shell.command_runner import CommandRunner
from workers.shell.sandbox.private_root import in_memory
from workers.tool import Replaced, ResultWithNote
from workers.tree.attributes import INTERNAL, attributes_of, set_attributes
from workers.tree.git_index import INDEX, is_index, same
from workers.tree.root import DIRECTORY, closing, open_beneath
from workers.treediff import overlay
from workers.wire.messages import PIECE


class CommandProposal(LayerProposal):
    """What a command would change, and what it has left in caches of package managers."""

    def __init__(self, caches: CacheLayers, *of_layer: Any) -> None:
        super().__init__(*of_layer)
        self._caches = caches

    def cached(self, total: int) -> Iterator[Replaced | bytes]:
        """Read what may be kept of the caches."""
        for path, mode, content in self._caches.filled():
            total -= len(content)
            if total < 0:
                return
            yield Replaced(path, None, NodeState("file", mode & 0o777, len(content)), kept=True)
            yield from (content[at : at + PIECE] for at in range(0, len(content), PIECE))


class CommandLayer:
    """What a command runs on instead of the root, and the layer of its changes."""

    def __init__(self, engine: CommandRunner, held: ExitStack) -> None:
        """Begin.

        Args:
            engine: For the command.
            held: Everything that is let go of after the decision.
        """
        self.engine: Final = engine
        self._held = held
        self.caches = CacheLayers((), "")
        """Of package managers."""
        self.close: Final = held.close
        """Let go of everything that was not committed."""

    def layer(self, until: float) -> UpperLayer:
        """Return what the command changed, once everything of it is dead; `until` is when to give up.

        Raises:
            CannotRehearse: it cannot be told.
        """
        raise NotImplementedError

    def lies_at(self, file: str) -> str:
        """Return where a program lies for the command."""
        return file

    def given(self, arguments: Sequence[bytes]) -> Sequence[bytes]:
        """Return the arguments that the command is given, of those that were asked for."""
        return arguments

    def told(self, printed: str) -> str:
        """Return what the command printed as it is told."""
        return printed

    def remark(self, _printed: str) -> str:
        """Return what is to be said of where it ran, to whoever reads what it printed; empty if nothing is."""
        return ""

    def changed(self, effects: Effects) -> bool:
        """Say whether there is anything in the effects that is worth a commit."""
        if effects.totals != {"modified": 1} or not effects.changes or not is_index(effects.changes[0].path):
            return bool(effects.totals)
        change = effects.changes[0]
        versions = self.layer(math.inf).versions(change.path, INDEX)
        modes = {each.mode for each in (change.before, change.after) if each}
        return versions is None or len(modes) > 1 or not same(*versions)

    def proposal(self, effects: Effects, result: ResultWithNote) -> LayerProposal:
        """Propose the effects, with what the command printed, which is returned once they are committed."""

        def committed(remark: str) -> ResultWithNote:
            return ResultWithNote(result.value, "; ".join(filter(None, (result.note, remark))))

        layer = self.layer(math.inf)
        return CommandProposal(self.caches, effects, layer, self._held, "Run it again.", committed, result)


class Rehearsal:
    """The rehearsal of one command."""

    def __init__(self, root_fd: int, root_path: str, scratch: str) -> None:
        """Begin.

        Args:
            root_fd: A descriptor of the root, O_PATH suffices; it stays the caller's.
            root_path: Where the root is in this process's mount namespace.
            scratch: An empty directory on a file system of limited size that has user attributes, which only this
                process can reach; whoever made it removes it.

        Raises:
            CannotRehearse: the scratch directory does not suffice.
        """
        self._root = root_fd
        self._root_path = root_path
        self._upper_path = os.path.join(scratch, "upper")
        self._work_path = os.path.join(scratch, "work")
        since_ns = time.time_ns()
        try:
            self.layer = UpperLayer(root_fd, self._made(), since_ns)
            """What the command changed, once everything of the command is dead."""
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise overlay.refusal(error) from error
            raise CannotRehearse(f"it cannot be prepared: {error.strerror}") from error

    def mount(self, at: str) -> None:
        """Mount the overlay over the path `at`; in the command's own mount namespace, before the command.

        Raises:
            CannotRehearse: there cannot be one, and why.
        """
        overlay.mount(self._root, self._root_path, at, self._upper_path, self._work_path)

    def _made(self) -> int:
        """Make both directories; open the upper one, which the command sees as the root, and so has its attributes."""
        with closing(open_beneath(self._root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)) as root:
            status = os.fstat(root)
            os.mkdir(self._work_path, 0o700)
            os.mkdir(self._upper_path, 0o700)
            upper = os.open(self._upper_path, DIRECTORY)
            try:
                os.setxattr(upper, f"{INTERNAL}probe", b"y")
                os.removexattr(upper, f"{INTERNAL}probe")
                set_attributes(upper, attributes_of(root), status.st_mode & 0o7777)
                os.utime(upper, ns=(status.st_atime_ns, status.st_mtime_ns))
            except BaseException:
                os.close(upper)
                raise
            return upper


class CommandOverlay(CommandLayer):
    """The overlay of one command."""

    def __init__(self, engine: CommandRunner) -> None:
        """Begin, before the command is started.

        Raises:
            CannotRehearse: there is no overlay here, and why.
        """
        with ExitStack() as stack:
            held, layers = engine.layout.held, engine.layout.layers
            root = os.open(held, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            try:
                mounts.new("tmpfs", layers, NO_SUID | NO_DEVICES, in_memory(engine.layout.scratch_mb))
            except OSError as error:
                failure = TooMuch if error.errno in overlay.PASSING else CannotRehearse
                raise failure(f"there is no room for its changes: {error.strerror}") from error
            stack.callback(mounts.detach, layers)
            self._rehearsal = Rehearsal(root, held, layers)
            caches = CacheLayers(engine.layout.caches, layers, online=engine.online)
            stack.callback(caches.close)
            stack.callback(self._rehearsal.layer.close)
            told = {**caches.variables, **engine.environment}
            overlaid = {"place": self._show, "filter": engine.overlay_filter, "ports": engine.overlay_ports}
            engine = msgspec.structs.replace(engine, hold=self._hold, environment=told, **overlaid)
            super().__init__(engine, stack.pop_all())
            self.caches = caches

    def layer(self, _until: float) -> UpperLayer:
        return self._rehearsal.layer

    def _hold(self, mounts: int) -> None:
        """Keep the overlay until it is let go of: to free what the kernel remembers of its files takes 2 us each."""
        self._held.callback(os.close, mounts)

    def _show(self, path: str) -> None:
        """Show the overlay as the root: the `Place` of this command.

        Raises:
            CannotRehearse: it cannot be mounted, and why.
            OSError: its layers cannot be hidden.
        """
        self._rehearsal.mount(path)
        self.caches.mount()
        mounts.detach(self.engine.layout.layers)
