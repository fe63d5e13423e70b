"""An undo: pack and root -> the layer that lies over the root when all is restored, held until it is decided.

Rule: until the commit nothing of the root is touched. The layer is made outside of every root: in memory where it is
small, since some disks take a millisecond to free each file; else in a scratch directory, locked while it is in use;
what a killed worker left there is known by its free lock, and goes with the next undo or daemon.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec

from workers.changes.effects import Change
from workers.commit.operations import same
from workers.commit.staging_directory import draft, sweep
from workers.commit.upper_layer import LayerProposal, UpperLayer
from workers.errors import CannotRehearse, ToolError, TooMuch
from workers.restore.left_names import leave_changed, looked
from workers.restore.merged_packs import merged
from workers.restore.pack import PackEntry, content, read
from workers.restore.restore_plan import RestorePlan, RestoreStep, judge, named, remarks, sentence, survey
from workers.restore.restored_layer import Content, RestoredLayer
from workers.restore.settlement import entries_of, settle
from workers.tool import Proposal, Result
from workers.tree.drafts import clear
from workers.tree.root import Root, closing, declined, open_beneath
from workers.treediff.comparison import Comparison, Difference
from workers.wire.pack_format import Broken

MEMORY: Final = 2**26
"""Bytes of a layer that is made in memory."""
_PAGE: Final = 4096
_NAME: Final = 2**10
"""What a file takes there, whatever it holds; its content takes whole pages."""
_AGAIN: Final = "Undo it again."
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What says nothing about a pack."""


class Restorer(msgspec.Struct, frozen=True):
    """Where packs are, and where layers are made: descriptors."""

    kept: int
    scratch: int
    memory: int
    """Where small ones are made."""

    def undo(self, root: Root, pack: str, *, force: bool) -> Result | Proposal:
        """Propose to take back what a pack says.

        Raises:
            ToolError: there is no such pack, or what it says cannot be taken back.
        """
        since_ns = self._begin()
        with closing(self._opened(pack)) as file, _told(pack):
            plan = survey(root.fd, read(file))
            judge(plan, force=force)
            return self._proposed(root, plan, partial(content, file), since_ns)

    def rewind(self, root: Root, packs: Sequence[str], *, look: bool) -> Result | Proposal:
        """Propose to take back what several packs say, the last first, but for what others have changed.

        With `look`, only tell what would be changed, and what would be left.

        Raises:
            ToolError: a pack is not there, or something cannot be looked at.
        """
        since_ns = self._begin()
        with _told(packs[0]):
            whole = merged((pack, self._read(pack)) for pack in packs)
            plan = survey(root.fd, whole.entries)
            plan.changed.update(whole.between)
            left = leave_changed(plan)
            answer = self._proposed(root, plan, partial(self._content, whole.held_by), since_ns, left)
            if look and isinstance(answer, LayerProposal):
                answer.close()
            return looked(answer.effects if isinstance(answer, Proposal) else None, plan, left) if look else answer

    def _begin(self) -> int:
        """Remove what killed workers have left; return the time, in ns."""
        since_ns = time.time_ns()
        with suppress(OSError):
            sweep(self.scratch)
        return since_ns

    def _read(self, pack: str) -> dict[str, PackEntry]:
        with closing(self._opened(pack)) as file:
            return read(file)

    def _content(self, held_by: Mapping[str, str], entry: PackEntry) -> Iterator[bytes]:
        with closing(self._opened(held_by[entry.path])) as file:
            yield from content(file, entry)

    def _proposed(
        self, root: Root, plan: RestorePlan, content: Content, since_ns: int, left: Iterable[str] = ()
    ) -> Result | Proposal:
        """Build the layer of a plan, and propose it."""
        with ExitStack() as stack:
            within = self.memory if _memory_of(plan.steps.values()) <= MEMORY else self.scratch
            scratch = stack.enter_context(scratch_directory(within, len(plan.steps)))
            upper = RestoredLayer(scratch, root, content)
            upper.build(plan.steps.values())
            known = {path: step.now for path, step in plan.steps.items()}
            compare = partial(Comparison, times=True, gone=upper.gone, known=known, made=upper.files)
            layer = UpperLayer(root.fd, os.dup(scratch), since_ns, compare)
            stack.callback(layer.close)
            effects = layer.effects()
            _check_still(layer.differences, plan, upper.made)
            if not layer.differences:
                return " ".join(("Nothing had to be restored.", *remarks(plan, left)))
            said = partial(_said, sentence(layer.differences), tuple(remarks(plan, left)))
            return LayerProposal(effects, layer, stack.pop_all(), _AGAIN, said)

    def settle(self, root: Root, number: int, pack: str, changes: Iterable[Change]) -> Result:
        """Settle a commit that was killed; say what became of it (`Settlement`).

        Raises:
            ToolError: the pack, or the root, cannot be read.
        """
        with _told(pack), ExitStack() as stack:
            entries = entries_of(changes)
            if pack:
                entries |= read(stack.enter_context(closing(self._opened(pack))))
            found: dict[str, Any] = msgspec.to_builtins(settle(root.fd, number, entries))
            return found

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


def _memory_of(steps: Iterable[RestoreStep]) -> int:
    """Return how many bytes a layer takes in memory."""
    states = (each.entry.before for each in steps)
    return sum(_NAME + -(-state.size // _PAGE) * _PAGE for state in states if state is not None)


@contextmanager
def scratch_directory(within: int, files: int) -> Iterator[int]:
    """Have a locked directory for about so many files; what of it cannot be removed goes with a later undo."""
    name, directory = draft(within, files)
    with closing(directory):
        try:
            yield directory
        finally:
            with suppress(OSError):
                os.fchmod(directory, stat.S_IRWXU)
                clear(directory)
                os.rmdir(name, dir_fd=within)


@contextmanager
def _told(pack: str) -> Iterator[None]:
    """Tell every error of the body as a `ToolError`."""
    try:
        yield
    except Broken as error:
        raise ToolError("internal", f"The pack {pack!r} is damaged: {error}. It cannot be undone.") from error
    except CannotRehearse as error:
        raise ToolError(
            "too_large" if isinstance(error, TooMuch) else "internal",
            f"Nothing was changed, for it cannot be restored: {error}.",
        ) from error
    except OSError as error:
        raise declined(error, str(error.filename or ".")) from error


def _said(sentence: str, remarks: Iterable[str], remark: str) -> Result:
    """Return what a person is told of an undo that took place."""
    return " ".join((sentence, *((f"Remark: {remark}.",) if remark else ()), *remarks))


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
