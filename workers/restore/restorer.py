"""An undo: pack and root -> what would be restored, held until it is decided.

Rule: until the commit nothing of the root is touched. The layer is made in a scratch directory outside of every root,
locked while it is in use; what a killed worker left there is known by its free lock, and goes with the next undo.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, Self

import msgspec

from workers.changes.effects import Effects
from workers.commit.outcome_text import committed
from workers.commit.preconditions import same
from workers.commit.removal import clear
from workers.commit.staging_lock import draft, sweep
from workers.commit.upper_layer import UpperLayer
from workers.errors import CannotRehearse, ToolError, TooMuch
from workers.restore.pack import content, read
from workers.restore.refusals import judge, named, remarks, sentence
from workers.restore.restore_plan import RestorePlan, survey
from workers.restore.restored_layer import RestoredLayer
from workers.tool import Proposal, Replaced, Result
from workers.tree.root import Root, declined, open_beneath
from workers.treediff.comparison import Difference
from workers.wire.pack_format import Broken

_AGAIN: Final = "Undo it again."
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What says nothing about a pack."""

_HANDLE: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Restorer(msgspec.Struct, frozen=True):
    """Where packs are, and where layers are made: descriptors."""

    kept: int
    scratch: int

    def undo(self, root: Root, pack: str, *, force: bool) -> Result | Proposal:
        """Propose to take back what a pack says.

        Raises:
            ToolError: there is no such pack, or what it says cannot be taken back.
        """
        since_ns = time.time_ns()
        with suppress(OSError):
            sweep(self.scratch)
        file = self._opened(pack)
        try:
            plan = survey(root.fd, read(file))
            judge(plan, force=force)
            with Scratch(self.scratch) as scratch:
                upper = RestoredLayer(scratch.fd, root, partial(content, file))
                upper.build(plan.steps.values())
                layer = UpperLayer(root.fd, os.dup(scratch.fd), since_ns)
                scratch.layer = layer
                effects = layer.effects()
                _check_still(layer.differences, plan, upper.made)
                if not layer.differences:
                    return " ".join(("Nothing had to be restored.", *remarks(plan)))
                return Restoration(effects, layer, scratch.taken(), tuple(remarks(plan)))
        except Broken as error:
            raise ToolError("internal", f"The pack {pack!r} is damaged: {error}. It cannot be undone.") from error
        except CannotRehearse as error:
            raise ToolError(
                "too_large" if isinstance(error, TooMuch) else "internal",
                f"Nothing was changed, for it cannot be restored: {error.reason}.",
            ) from error
        except OSError as error:
            raise declined(error, str(error.filename or ".")) from error
        finally:
            os.close(file)

    def _opened(self, pack: str) -> int:
        """Open a pack, which is a regular file and no link."""
        try:
            file = open_beneath(self.kept, pack, os.O_RDONLY | os.O_NOFOLLOW, links=False)
        except OSError as error:
            if error.errno in _SHORT:
                raise declined(error, pack) from error
            message = f"There is no pack {pack!r}: what the call replaced is no longer kept. It cannot be undone."
            raise ToolError("not_found", message, pack=pack) from error
        if "/" in pack or not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise ToolError("not_found", f"{pack!r} is no pack.", pack=pack)
        return file


class Scratch:
    """A locked directory for one layer; it goes at the end of the `with`, unless somebody has `taken` it."""

    def __init__(self, within: int) -> None:
        self.layer: UpperLayer | None = None
        self._within = within
        self._name, self.fd = draft(within)
        self._kept = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        if not self._kept:
            self.remove()

    def taken(self) -> Self:
        """Keep it until `remove`."""
        self._kept = True
        return self

    def remove(self) -> None:
        """Remove it with all that is in it; what cannot be removed goes with a later undo."""
        if self.layer is not None:
            self.layer.close()
        with suppress(OSError):
            os.fchmod(self.fd, stat.S_IRWXU)
            clear(self.fd)
            os.rmdir(self._name, dir_fd=self._within)
        os.close(self.fd)


class Restoration(Proposal):
    """What an undo would do."""

    def __init__(self, effects: Effects, layer: UpperLayer, scratch: Scratch, remarks: tuple[str, ...]) -> None:
        super().__init__(effects)
        self._layer = layer
        self._scratch = scratch
        self._remarks = remarks

    def originals(self, each: int, total: int) -> Iterator[Replaced | bytes]:
        """Read what would be restored over, so that the undo can be undone."""
        return self._layer.originals(each, total)

    def commit(self) -> Result:
        """Restore, and say how much."""
        said = sentence(self._layer.differences)
        try:
            remark = committed(self._layer.commit(), _AGAIN)
        finally:
            self._scratch.remove()
        return " ".join((said, *((f"Remark: {remark}.",) if remark else ()), *self._remarks))

    def discard(self) -> None:
        """Leave everything as it is."""
        self._scratch.remove()


def _check_still(differences: Iterable[Difference], plan: RestorePlan, made: set[str]) -> None:
    """Check that what would change is what was judged.

    Raises:
        ToolError: `conflict`, the root has changed meanwhile.
    """
    for path, before, _after, _inner in differences:
        step = plan.steps.get(path)
        if not same(step.now, before) if step is not None else path not in made or before is not None:
            message = f'Nothing was changed: somebody else changed "{named(path)}" meanwhile. {_AGAIN}'
            raise ToolError("conflict", message, path=named(path))
