"""An undo: pack and root -> the layer that lies over the root when all is restored, held until it is decided.

Rule: until the commit nothing of the root is touched. The layer is made outside of every root: in memory where it is
small, since some disks take a millisecond to free each file; else in a scratch directory, locked while it is in use;
what a killed worker left there is known by its free lock, and goes with the next undo. It is as an overlay would have
it but for marks of deleted names, made name by name relative to open directories, through no link. A directory that is
not of the pack is as the root has it. Modes come last, for they may forbid what comes before.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec

from workers.changes.effects import Change, NodeState
from workers.commit.operations import OpenParents, same
from workers.commit.staging import make_special
from workers.commit.staging_directory import draft, sweep
from workers.commit.upper_layer import LayerProposal, UpperLayer
from workers.errors import CannotRehearse, ToolError, TooMuch
from workers.restore.pack import PackEntry, content, read
from workers.restore.restore_plan import RestorePlan, RestoreStep, judge, named, remarks, sentence, survey
from workers.restore.settlement import entries_of, settle
from workers.tool import Proposal, Result
from workers.tree.attributes import attributes_of, names_others, set_attributes, without_lists
from workers.tree.drafts import clear
from workers.tree.root import DIRECTORY, HANDLE, Root, closing, declined, open_beneath, parent_of
from workers.treediff.comparison import Comparison, Difference
from workers.treediff.snapshot import BITS, CHUNK, Node, plain_node
from workers.wire.pack_format import Broken

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MEMORY: Final = 2**26
"""Bytes of a layer that is made in memory."""
_PAGE: Final = 4096
_NAME: Final = 2**10
"""What a file takes there, whatever it holds; its content takes whole pages."""
_AGAIN: Final = "Undo it again."
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What says nothing about a pack."""


Content = Callable[[PackEntry], Iterator[bytes]]
"""Reads what a kept file held."""


class RestoredLayer:
    """One layer, in an empty directory whose descriptor stays the caller's."""

    def __init__(self, fd: int, root: Root, content: Content) -> None:
        self.made: set[str] = set()
        """Directories that neither the root nor the pack has."""
        self.gone: dict[str, set[str]] = {}
        """Directory -> names in it that shall not be there."""
        self.files: dict[str, Node] = {}
        """Small files without attributes, as a look at them finds them."""
        self._fd = fd
        self._parents = OpenParents(fd)
        self._root = root
        self._content = content
        self._directories: dict[str, tuple[int, Mapping[str, bytes]]] = {}
        self._covered: set[str] = set()
        """Names that are no directories here, and with them what the root has beneath."""

    def build(self, steps: Iterable[RestoreStep]) -> None:
        """Make everything. The process's umask is 0.

        Raises:
            Broken: a content is not what the pack says it is.
            OSError: the system refuses something.
        """
        top = self._as_root_has("")
        with self._parents:
            for step in steps:
                if step.entry.path == ".":
                    before = step.entry.before
                    if step.does == "restore" and before is not None:
                        top = before.mode, step.entry.attributes
                elif step.does == "stay":
                    self._directory(step.entry.path)
                elif step.does != "leave":
                    self._name(step)
        for path, (mode, attributes) in reversed(self._directories.items()):
            self._finish_directory(path, mode, attributes)
        self._finish_directory(".", *top)

    def _name(self, step: RestoreStep) -> None:
        entry, before, name = step.entry, step.entry.before, step.entry.path.rpartition("/")[2]
        if before is not None and before.kind == "dir":
            os.mkdir(name, stat.S_IRWXU, dir_fd=self._parent(entry))
            attributes, mode = _settable(entry, before)
            self._directories[entry.path] = mode, attributes
            return
        if before is None:
            if entry.parent not in self._covered and step.now is not None:
                self._directory(entry.parent)
                self.gone.setdefault(entry.parent, set()).add(name)
        elif before.kind == "file":
            self._file(self._parent(entry), name, step, before)
        else:
            make_special(self._parent(entry), name, before)
        self._covered.add(entry.path)

    def _file(self, parent: int, name: str, step: RestoreStep, before: NodeState) -> None:
        chunks = self._content(step.entry) if step.does == "restore" else self._present(step.entry.path)
        size, digest = 0, hashlib.sha256()
        with closing(os.open(name, _CREATE, 0o600, dir_fd=parent)) as file:
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(file, rest) :]
                size += len(chunk)
                digest.update(chunk)
            if size != before.size or before.digest not in (b"", digest.digest()):
                raise Broken(f"{step.entry.path[:200]!r}: its content is another one")
            set_attributes(file, *_settable(step.entry, before))
            os.utime(file, ns=(before.mtime_ns, before.mtime_ns))
            if step.does == "restore" and step.entry.content is not None and not os.listxattr(file):
                self.files[step.entry.path] = plain_node(os.fstat(file), digest.digest(), step.entry.content)

    def _present(self, path: str) -> Iterator[bytes]:
        """Read what a file of the root holds now."""
        with closing(open_beneath(self._root.fd, path, os.O_RDONLY, links=False)) as file:
            while chunk := os.read(file, CHUNK):
                yield chunk

    def _parent(self, entry: PackEntry) -> int:
        """Return a descriptor of the directory that a name is in, until the next one; it is made if need be."""
        self._directory(entry.parent)
        return self._parents.of(entry.parent)

    def _directory(self, path: str) -> None:
        """Let the layer have a directory as the root has it, or a new one."""
        if not path or path in self._directories:
            return
        self._directory(path.rpartition("/")[0])
        try:
            self._directories[path] = self._as_root_has(path)
        except FileNotFoundError:
            self._directories[path] = 0o777 & ~self._root.umask, {}
            self.made.add(path)
        with parent_of(self._fd, path) as (parent, name):
            os.mkdir(name, stat.S_IRWXU, dir_fd=parent)

    def _as_root_has(self, path: str) -> tuple[int, Mapping[str, bytes]]:
        """Return mode and attributes of a directory of the root; none where it may not be read."""
        with closing(open_beneath(self._root.fd, path or ".", HANDLE, links=False)) as handle:
            mode = os.fstat(handle).st_mode & BITS
            try:
                with closing(os.open(".", DIRECTORY, dir_fd=handle)) as directory:
                    return mode, attributes_of(directory)
            except PermissionError:
                return mode, {}

    def _finish_directory(self, path: str, mode: int, attributes: Mapping[str, bytes]) -> None:
        with closing(open_beneath(self._fd, path, DIRECTORY, links=False)) as directory:
            set_attributes(directory, attributes, mode)


def _settable(entry: PackEntry, before: NodeState) -> tuple[Mapping[str, bytes], int]:
    """Return the attributes and the mode that a name is given, without an access list that cannot be."""
    others = names_others(entry.attributes)
    return without_lists(entry.attributes, before.mode) if others else (entry.attributes, before.mode)


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
        since_ns = time.time_ns()
        with suppress(OSError):
            sweep(self.scratch)
        with closing(self._opened(pack)) as file, _told(pack), ExitStack() as stack:
            plan = survey(root.fd, read(file))
            judge(plan, force=force)
            within = self.memory if _memory_of(plan.steps.values()) <= MEMORY else self.scratch
            scratch = stack.enter_context(scratch_directory(within, len(plan.steps)))
            upper = RestoredLayer(scratch, root, partial(content, file))
            upper.build(plan.steps.values())
            known = {path: step.now for path, step in plan.steps.items()}
            compare = partial(Comparison, times=True, gone=upper.gone, known=known, made=upper.files)
            layer = UpperLayer(root.fd, os.dup(scratch), since_ns, compare)
            stack.callback(layer.close)
            effects = layer.effects()
            _check_still(layer.differences, plan, upper.made)
            if not layer.differences:
                return " ".join(("Nothing had to be restored.", *remarks(plan)))
            said = partial(_said, sentence(layer.differences), tuple(remarks(plan)))
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
