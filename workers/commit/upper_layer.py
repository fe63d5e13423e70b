"""An upper layer that is there already, and the root that it lies over: what would change, and whether it becomes so.

Rule: the two are compared once, and what is told, read and committed is what was found then. Until `commit` nothing of
the root is touched. Nobody writes the upper layer any more.
"""

import errno
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from workers.changes.effects import CommitOutcome, Effects
from workers.commit.commit import TreeDiff, commit, committed
from workers.commit.operations import obstacle, of_root
from workers.errors import CannotRehearse, ToolError
from workers.kernel import let_go
from workers.tool import Proposal, Replaced, Result
from workers.tree.attributes import attributes_of, shortened
from workers.tree.git_config import GitConfigs
from workers.tree.git_ignore import GitIgnore
from workers.tree.git_index import INDEX, gist, is_index
from workers.tree.root import closing, open_beneath, parent_of, shown
from workers.treediff.comparison import Comparison, Difference
from workers.treediff.content_diffs import Content
from workers.treediff.effects_of import build_effects, committable
from workers.treediff.repository_changes import git_changes
from workers.treediff.snapshot import KEPT, Node, Ration, open_seen, opened, spoken
from workers.wire.messages import PIECE

LEFT_BEHIND: Final = 2 * 2**30
"""Bytes of files in the upper layer, holes included, that are read to be told."""


class UpperLayer:
    """One upper layer over one root."""

    def __init__(
        self, root_fd: int, upper_fd: int, since_ns: int, compare: Callable[..., Comparison] = Comparison
    ) -> None:
        """Take both.

        Args:
            root_fd: A descriptor of the root, O_PATH suffices; it stays the caller's.
            upper_fd: A descriptor of the upper layer, to be read, which has the root's mode and attributes but for what
                shall change, and marks what is gone as an overlay does (`overlay`). `close` closes it.
            since_ns: When what is above was begun (time.time_ns): what the root has from later is somebody else's.
            compare: Makes the comparison.
        """
        self._root = root_fd
        self._upper = upper_fd
        self._since_ns = since_ns
        self._compare = compare
        self._held: list[int] = []
        self._found: tuple[Effects, TreeDiff] | None = None

    def effects(self, until: float = math.inf) -> Effects:
        """Return what would change.

        Args:
            until: When it must have been told (time.monotonic), or it is too much.

        Raises:
            CannotRehearse: it cannot be told; `TooMuch` if that is because of its size.
        """
        return self._compared(until)[0]

    @property
    def differences(self) -> Sequence[Difference]:
        """All that would change, a directory before what is in it."""
        return self._compared()[1].differences

    def versions(self, path: str, most: int) -> tuple[bytes, bytes] | None:
        """Return a file as it is and as it would be; None where that is not one of at most so many bytes both times."""
        for name, before, after, _inner in self.differences:
            if name == path and before and after and before.state.kind == after.state.kind == "file":
                if max(before.state.size, after.state.size) > most:
                    return None
                was = _reader(self._root, ours=False)(path, before, most)
                becomes = _reader(self._upper, ours=True)(path, after, most)
                return None if was is None or becomes is None else (was, becomes)
        return None

    def originals(self, each: int, total: int) -> Iterator[Replaced | bytes]:
        """Read what a commit would change; as `workers.tool.Proposal.originals`, also of what the effects leave out.

        In the order of the effects, by which the supervisor knows beforehand what there is room for.

        Raises:
            ToolError: `conflict`, something is no longer what it was told to be.
        """
        left = total
        for path, before, after, _inner in sorted(self.differences, key=lambda each: os.fsencode(each.path)):
            text, raw = spoken(path)
            was, becomes = before and before.state, after and committable(after.state)
            wanted = was is not None and was.kind == "file" and was.size <= min(each, left)
            if before is None or was is None or not (wanted or was.attributes):
                yield Replaced(text, was, becomes, raw, gist=self._gist(path, after))
                continue
            if before.content is not None and not was.attributes:
                yield Replaced(text, was, becomes, raw, kept=True, gist=self._gist(path, after))
                left -= was.size
                if before.content:
                    yield before.content
                continue
            try:
                with _opened(self._root, path, before) as file:
                    attributes = attributes_of(file) if file >= 0 else {}
                    if file >= 0 and shortened(attributes) != was.attributes:
                        raise _overtaken(path)
                    kept = wanted and file >= 0
                    yield Replaced(text, was, becomes, raw, attributes, kept, self._gist(path, after))
                    if kept:
                        left -= was.size
                        yield from _content(file, path, before)
            except OSError as error:
                raise _overtaken(path) from error

    def _gist(self, path: str, after: Node | None) -> bytes:
        if after is None or after.state.kind != "file" or not is_index(path):
            return b""
        return gist(_reader(self._upper, ours=True)(path, after, INDEX) or b"")

    def commit(self, number: int = 0) -> CommitOutcome:
        """Apply exactly what was told to the root, or nothing, for the call of that number.

        The process must have one thread.
        """
        return commit(self._compared()[1], self._held, number)

    def close(self) -> None:
        """Let go of the upper layer, what is in it stays; and of what a commit has removed."""
        while self._held:
            let_go(self._held.pop())
        if self._upper >= 0:
            os.close(self._upper)
            self._upper = -1

    def _compared(self, until: float = math.inf) -> tuple[Effects, TreeDiff]:
        """Compare the two, once."""
        if self._found is None:
            above = Ration(LEFT_BEHIND, LEFT_BEHIND, strict=True, keeps=KEPT)
            below = of_root(keeps=KEPT)
            comparison = self._compare(self._upper, self._root, above=above, below=below, until=until)
            try:
                comparison.run()
                contents = _reader(self._root, ours=False), _reader(self._upper, ours=True)
                found = tuple(comparison.differences)
                if why := obstacle(self._root, found):
                    raise CannotRehearse(why)
                configs = GitConfigs(self._root)
                effects = build_effects(
                    *(found, comparison.unchanged, contents, self._since_ns, self._has, configs, self._leaves),
                    ignore=GitIgnore(self._root),
                    git=git_changes(self._root, found, contents[1]),
                )
            except OSError as error:
                raise CannotRehearse(
                    f"what the command left cannot be compared with the root: {error.strerror}"
                ) from error
            diff = TreeDiff(self._root, self._upper, found, comparison.unchanged, self._since_ns)
            self._found = effects, diff
        return self._found

    def _has(self, path: str) -> bool:
        with suppress(OSError), closing(open_beneath(self._root, path, os.O_PATH | os.O_NOFOLLOW, links=False)):
            return True
        return False

    def _leaves(self, path: str) -> bool:
        try:
            os.close(open_beneath(self._root, path, os.O_PATH, links=True))
        except OSError as error:
            return error.errno in {errno.EXDEV, errno.ELOOP}
        return False


class LayerProposal(Proposal):
    """What an upper layer would change."""

    def __init__(
        self,
        effects: Effects,
        layer: UpperLayer,
        held: ExitStack,
        again: str,
        result: Callable[[str], Result],
        rehearsed: Result = "",
    ) -> None:
        """Take them over.

        Args:
            effects: of the layer.
            layer: to be committed.
            held: Everything that is let go of after the decision, the layer as well.
            again: What to do where a commit did not take place, a sentence.
            result: Makes the call's result of what is to be remarked on a commit that did; empty if nothing is.
            rehearsed: The result where nothing is committed.
        """
        super().__init__(effects)
        self._layer = layer
        self._held = held
        self._again = again
        self._result = result
        self._rehearsed = rehearsed

    def originals(self, each: int, total: int) -> Iterator[Replaced | bytes]:
        """Read what a commit would change."""
        return self._layer.originals(each, total)

    def commit(self) -> Result:
        """Apply exactly these effects to the root."""
        return self._result(committed(self._layer.commit(self.number), self._again))

    def expected(self) -> Result:
        """Return the result of a commit without a remark."""
        return self._result("")

    def discarded(self) -> Result:
        """Return what was printed, where that is all that remains."""
        return self._rehearsed

    def close(self) -> None:
        """Let go of the layer."""
        self._held.close()


@contextmanager
def _opened(root: int, path: str, seen: Node) -> Iterator[int]:
    """Open a file or directory of the root that was seen, for the body; -1 where that is not allowed.

    Raises:
        OSError: it is gone, or another one by now.
    """
    with ExitStack() as opened_file:
        with _place(root, path, seen) as (place, name, status):
            try:
                file = opened_file.enter_context(closing(open_seen(place, name, status)))
            except PermissionError:
                file = -1
        yield file


def _content(file: int, path: str, seen: Node) -> Iterator[bytes]:
    """Read exactly what was seen.

    Raises:
        ToolError: `conflict`, it is another content by now.
    """
    left, digest = seen.state.size, hashlib.sha256()
    while left:
        chunk = os.read(file, min(PIECE, left))
        if not chunk:
            raise _overtaken(path)
        left -= len(chunk)
        digest.update(chunk)
        yield chunk
    if seen.state.digest not in (b"", digest.digest()):
        raise _overtaken(path)


def _overtaken(path: str) -> ToolError:
    name = shown(spoken(path)[0])
    said = f'Nothing was changed: somebody else changed "{name}" meanwhile. Do it again.'
    return ToolError("conflict", said, path=name)


def _reader(directory: int, *, ours: bool) -> Content:
    """Return what reads files beneath a directory, if they are still those that were seen."""

    def content(path: str, seen: Node, most: int) -> bytes | None:
        if seen.content is not None:
            return seen.content[:most]
        with (
            suppress(OSError),
            _place(directory, path, seen) as (place, name, status),
            opened(place, name, status, ours=ours) as file,
        ):
            return os.read(file, min(most, seen.state.size))
        return None

    return content


@contextmanager
def _place(directory: int, path: str, seen: Node) -> Iterator[tuple[int, str, os.stat_result]]:
    """Open the directory of what was seen, for the body; give its name and its status, too.

    Raises:
        OSError: it is gone, or another one by now.
    """
    with parent_of(directory, path) as (place, name):
        status = os.lstat(name, dir_fd=place)
        plain = seen.state.kind != "dir"  # a directory has neither a size nor a time here
        now = status.st_ino, status.st_size * plain, status.st_mtime_ns * plain
        if now != (seen.inode, seen.state.size, seen.state.mtime_ns):
            raise FileNotFoundError(path)
        yield place, name, status
