"""The upper layer beside the root: every name that is another one on the overlay.

Rule: nothing is trusted to be small or shallow, no link is followed, and one directory of each side is open at a
time. The walk is in the order of names, a directory before what is in it. Directories of the upper layer that cannot be
read are made so, once their mode has been noted: a comparison is made once.

Another time alone is no difference, unless an undo gives it back. A difference is `inner` when its directory is itself
new or gone: then it belongs to the last one before it that is not.

    upper layer             root               what it is
    whiteout                anything           gone, a directory with all that is in it
    directory               directory          looked into; if it is opaque, what only the root has is gone
    directory               nothing or other   new, with all that is in it
    anything else           anything           another, unless both are the same
"""

import math
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from workers.changes.effects import NodeState, What
from workers.errors import CannotRehearse, TooMuch
from workers.tree.root import DIRECTORY, HANDLE, PATH_LIMIT, closing, open_beneath
from workers.treediff.overlay import is_opaque, is_whiteout
from workers.treediff.snapshot import BITS, Node, Ration, look

NAMES: Final = 200_000
"""Names that one comparison looks at."""


class Difference(NamedTuple):
    """A name before and after; `path` may hold surrogates, as os.fsdecode makes them."""

    path: str
    before: Node | None
    after: Node | None
    inner: bool = False

    def what(self) -> What:
        """Say in one word what kind of difference it is."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "deleted"
        before, after = self.before.state, self.after.state
        if before.kind != after.kind:
            return "replaced"
        if _content(before) != _content(after):
            return "modified"
        if before.mode != after.mode:
            return "mode"
        return "attributes" if before.attributes != after.attributes else "times"


class _Task(NamedTuple):
    """A directory to go through: on which sides it is, and whether what only the root has there is gone."""

    path: str
    upper: bool
    lower: bool
    hides: bool
    inner: bool


Gone = Mapping[str, Collection[str]]
"""Directory ("" is the top) -> names in it that are gone without a mark: on an overlay itself none can be made."""
NOTHING: Final[Gone] = MappingProxyType({})

_Step = tuple[Difference | None, _Task | None]


class Comparison:
    """One walk over an upper layer and the root; `differences` and `unchanged` are what it finds."""

    def __init__(
        self,
        upper: int,
        root: int,
        *,
        above: Ration,
        below: Ration,
        until: float = math.inf,
        times: bool = False,
        gone: Gone = NOTHING,
        known: Mapping[str, Node | None] = MappingProxyType({}),
        made: Mapping[str, Node] = MappingProxyType({}),
    ) -> None:
        """Take the descriptors of both directories, which stay the caller's.

        Args:
            upper: The upper layer.
            root: What it lies over.
            above: For digests of the former.
            below: For those of the latter.
            until: When to give up (time.monotonic).
            times: Whether another time alone is a difference.
            gone: Names that are gone without a mark.
            known: What of the root was seen before, by path: it is not read again where it is as it was (`look`).
            made: What of the upper layer is known by whoever made it, the same.
        """
        self.differences: list[Difference] = []
        self.unchanged: dict[int, tuple[str, Node]] = {}
        """Inode in the upper layer of a file with several names -> one of them that the root has just so."""
        self._upper = upper
        self._root = root
        self._above = above
        self._below = below
        self._until = until
        self._times = times
        self._gone = gone
        self._known = known
        self._made = made
        self._device = os.fstat(root).st_dev
        self._names = 0

    def run(self) -> None:
        """Walk.

        Raises:
            CannotRehearse: another file system is mounted in the root, or there is too much.
        """
        before, after = (
            _as_root(each, ration, ours=ours)
            for each, ration, ours in ((self._root, self._below, False), (self._upper, self._above, True))
        )
        if before.state != after.state:
            self.differences.append(Difference(".", before, after))
        self._walk(_Task("", upper=True, lower=True, hides=False, inner=False))

    def walk_lost(self, path: str) -> None:
        """Find everything in a directory of the root, as if it were gone, without the directory itself."""
        self._walk(_Task(path, upper=False, lower=True, hides=True, inner=True))

    def _walk(self, task: _Task) -> None:
        steps: list[_Step] = [(None, task)]
        while steps:
            found, below = steps.pop()
            if found is not None:
                self.differences.append(found)
            if below is not None:
                steps.extend(reversed(list(self._steps(below))))

    def _steps(self, task: _Task) -> Iterator[_Step]:
        with ExitStack() as opened:
            upper = lower = -1
            if task.upper:
                upper = opened.enter_context(closing(os.open(task.path or ".", DIRECTORY, dir_fd=self._upper)))
            if task.lower:
                lower = opened.enter_context(closing(self._open_lower(task)))
            above = dict.fromkeys(self._gone.get(task.path, ()), False) | self._names_of(upper) if task.upper else {}
            names = set(above)
            if task.hides and task.lower:
                names |= set(self._names_of(lower))
            for name in sorted(names):
                yield self._step(task, name, upper if above.get(name) else -1, lower)

    def _open_lower(self, task: _Task) -> int:
        try:
            lower = open_beneath(self._root, task.path or ".", DIRECTORY, links=False)
        except PermissionError:
            if task.hides:
                raise CannotRehearse(f"the directory {task.path!r} cannot be read") from None
            lower = open_beneath(self._root, task.path or ".", HANDLE, links=False)
        except OSError as error:
            raise CannotRehearse(f"the directory {task.path!r} changed while it was compared") from error
        if os.fstat(lower).st_dev != self._device:
            os.close(lower)
            raise CannotRehearse(f"another file system is mounted in the root, at {task.path!r}")
        return lower

    def _names_of(self, directory: int) -> dict[str, bool]:
        """Return the names of a directory, and of each whether something is there: a whiteout is nothing."""
        names: dict[str, bool] = {}
        with os.scandir(directory) as entries:
            for entry in entries:
                self._names += 1
                if self._names > NAMES:
                    raise TooMuch(f"the command changed more than {NAMES} names")
                # The type comes with the name, so that only devices are looked at.
                plain = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
                names[entry.name] = plain or not is_whiteout(entry.stat(follow_symlinks=False))
        return names

    def _step(self, task: _Task, name: str, upper: int, lower: int) -> _Step:
        path = f"{task.path}/{name}" if task.path else name
        if len(os.fsencode(path)) > PATH_LIMIT:
            did = "left a tree behind" if upper >= 0 else "removed a tree"  # as the root has it
            raise TooMuch(f"the command {did} that is deeper than a path can be long")
        if time.monotonic() > self._until:
            raise TooMuch("what the command changed takes too long to compare with the root")
        after = look(upper, name, self._above, ours=True, known=self._made.get(path)) if upper >= 0 else None
        before = look(lower, name, self._below, ours=False, known=self._known.get(path)) if lower >= 0 else None
        if after is not None and after.state.kind == "device":
            raise CannotRehearse(f"the command made a device, {path!r}")
        return self._difference(task, path, before, after), self._below_of(task, path, before, after, (upper, name))

    def _difference(self, task: _Task, path: str, before: Node | None, after: Node | None) -> Difference | None:
        if before is None and after is None:
            return None
        if before is None or after is None or not (before.state == after.state or self._only_touched(before, after)):
            return Difference(path, before, after, task.inner)
        if after.links > 1 and after.state.kind == "file":
            self.unchanged.setdefault(after.inode, (path, before))
        return None

    def _only_touched(self, before: Node, after: Node) -> bool:
        """Say whether only the time is another; a file with other names has it together with them."""
        if self._times or after.links != 1 or before.state.digest != after.state.digest:
            return False
        return before.state == msgspec.structs.replace(after.state, mtime_ns=before.state.mtime_ns)

    def _below_of(
        self, task: _Task, path: str, before: Node | None, after: Node | None, place: tuple[int, str]
    ) -> _Task | None:
        was = before is not None and before.state.kind == "dir"
        is_now = after is not None and after.state.kind == "dir"
        if after is not None and is_now and after.state.mode & 0o700 != 0o700:  # noqa: PLR2004 - to look into it
            os.chmod(place[1], after.state.mode | 0o700, dir_fd=place[0])
        if was and is_now:
            return _Task(path, upper=True, lower=True, hides=task.hides or _hides(*place), inner=False)
        if was or is_now:
            return _Task(path, upper=is_now, lower=was, hides=was, inner=True)
        return None


def everything_in(
    root: int, path: str, ration: Ration, known: Mapping[str, Node] = MappingProxyType({})
) -> dict[str, Node]:
    """Return everything in a directory beneath `root`, by path, without the directory itself.

    What is `known` is not read again where it is as it was.

    Raises:
        CannotRehearse: it cannot be looked through, or there is too much.
    """
    walk = Comparison(-1, root, above=ration, below=ration, known=known)
    walk.walk_lost(path)
    return {each.path: each.before for each in walk.differences if each.before is not None}


def _as_root(directory: int, ration: Ration, *, ours: bool) -> Node:
    """Look at a directory itself; one of `ours` is let be looked into."""
    mode = os.fstat(directory).st_mode & BITS
    if ours and mode & 0o700 != 0o700:  # noqa: PLR2004 - to look into it
        os.fchmod(directory, mode | 0o700)
    seen = look(directory, ".", ration, ours=False)
    assert seen is not None, "an open directory has itself"
    return seen._replace(state=msgspec.structs.replace(seen.state, mode=mode))


def _hides(upper: int, name: str) -> bool:
    with closing(os.open(name, DIRECTORY, dir_fd=upper)) as directory:
        return is_opaque(directory)


def _content(state: NodeState) -> tuple[int, bytes, str, bytes]:
    return state.size, state.digest, state.target, state.raw_target
