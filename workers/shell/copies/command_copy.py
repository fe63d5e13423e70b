"""The copy of the root that one command is rehearsed in.

Rule: it lies in a locked directory of Strongroom's own, outside of every root, which goes when it is decided about the
command, or is swept by a later one where the worker was killed. Where there is a sandbox, it lies in the memory that
the sandbox has for changes, and is shown at the root's own path; where there is none, its path is another one, and what
a command prints or writes may name that.
"""

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Final

import msgspec

from workers.commit.staging_directory import draft
from workers.commit.upper_layer import UpperLayer
from workers.confine import mounts
from workers.confine.mounts import NO_DEVICES, NO_SUID
from workers.errors import CannotRehearse, ToolError, TooMuch
from workers.shell.command_overlay import CommandLayer
from workers.shell.command_runner import CommandRunner, CopyPlaces
from workers.shell.copies.copy_calls import CopyCalls
from workers.shell.copies.copy_layer import CopyLayer
from workers.shell.copies.copy_size import is_over
from workers.shell.copies.moved_paths import files_with, hints, moved, moved_arguments
from workers.shell.copies.tree_copy import TreeCopy
from workers.shell.sandbox import private_root
from workers.shell.sandbox.private_root import Layout, in_memory
from workers.shell.shell_inputs import within
from workers.tree.drafts import clear
from workers.tree.root import DIRECTORY, closing, open_beneath, shown
from workers.treediff.comparison import Comparison

_MEGABYTE: Final = 2**20
_NAMED: Final = 5
"""Names that a remark lists."""
_OF_THE_ROOT: Final = "[core]\n\tcheckStat = minimal\n\ttrustctime = false\n"
"""For git, which remembers inodes and times of change of the root's files."""


class _Copy:
    """A copy beside an empty layer, in an open directory, and what becomes of both."""

    def __init__(self, root: int, within: int, copy: TreeCopy, place: str) -> None:
        """Copy; `place` names where to.

        Raises:
            CannotRehearse: it cannot be; `TooMuch` where there is no room.
        """
        self._root = root
        self._copy = copy
        self._found: UpperLayer | None = None
        self._naming: list[str] | None = None
        self._since_ns = time.time_ns()
        with ExitStack() as stack:
            self._copied, self._upper = (
                stack.enter_context(closing(_made(within, name))) for name in ("root", "upper")
            )
            try:
                copy.make(self._copied)
            except OSError as error:
                size = f"{-(-copy.size // _MEGABYTE)} MB in {place}"
                why = f"the copy of the root that it would run in ({size}) cannot be made: {error.strerror}"
                raise TooMuch(why) from error
            self._held = stack.pop_all()

    def layer(self, until: float) -> UpperLayer:
        """Return the layer of what changed, built once.

        Raises:
            ToolError: `conflict`, something is no longer in the root.
            CannotRehearse: what changed cannot be told.
        """
        if self._found is None:
            layer = CopyLayer(self._copy, self._copied, self._upper, until)
            try:
                layer.build()
            except OSError as error:
                raise CannotRehearse(
                    f"what it left in its copy of the root cannot be told: {error.strerror}"
                ) from error
            self._need(layer.needed)
            self._found = UpperLayer(
                self._root, os.dup(self._upper), self._since_ns, partial(Comparison, gone=layer.gone)
            )
        return self._found

    def _need(self, names: Iterable[str]) -> None:
        for each in names:
            try:
                os.close(open_beneath(self._root, each or ".", os.O_PATH | os.O_NOFOLLOW, links=False))
            except FileNotFoundError as error:
                why = f'"{shown(each)}": somebody else removed it while the command ran'
                raise ToolError("conflict", f"Nothing was changed, because {why}. Run it again.") from error
            except OSError:  # it is another one by now, which the comparison finds
                continue

    def close(self) -> None:
        """Let go of it; the directory stays."""
        if self._found is not None:
            self._found.close()
        self._held.close()

    def left_out(self) -> str:
        """Say what is not in the copy; empty where nothing is missing."""
        if not self._copy.left_out:
            return ""
        because = " because copy_mb of [shell] is smaller than the root" if self._copy.without_ignored else ""
        return f"not in the copy{because}: {_listed(self._copy.left_out)}"

    def naming(self, path: str) -> list[str]:
        """Return names of changed files that hold a path; none before it is known what changed."""
        if self._found is not None and self._naming is None:
            self._naming = files_with(self._upper, os.fsencode(path))
        return self._naming or []


def _listed(names: Iterable[str]) -> str:
    first = sorted(names)
    return ", ".join(map(shown, first[:_NAMED])) + ", ..." * (len(first) > _NAMED)


class CommandCopy(CommandLayer):
    """The copy of one command where there are no namespaces."""

    def __init__(self, engine: CommandRunner) -> None:
        """Begin, before the command is started.

        Raises:
            CannotRehearse: there is no copy, and why.
        """
        root = engine.start.root_fd
        copy = _measured(root, engine.copy_mb)
        with ExitStack() as stack:
            directory, places = own_places(engine, stack, copy.names_in_all)
            self.places = places
            self._copy = _Copy(root, directory, copy, engine.copies)
            stack.callback(self._copy.close)
            engine = msgspec.structs.replace(
                engine,
                place=_not_shown,
                filter=engine.overlay_filter,
                copied=places,
                calls=lambda group: CopyCalls(group, places[1:4], engine.start.limits.processes),
                environment=moved(engine.environment, engine.layout.root, places),
                is_over_disk=partial(
                    is_over, directory, places.top, copy, engine.layout.scratch_mb, os.fstatvfs(directory)
                ),
            )
            super().__init__(engine, stack.pop_all())

    def layer(self, until: float) -> UpperLayer:
        return self._copy.layer(until)

    def lies_at(self, file: str) -> str:
        """Return where a program lies that may be one of the root's own."""
        root = self.engine.layout.root
        return self.places.root + file.removeprefix(root) if within(file, root) else file

    def told(self, printed: str) -> str:
        return printed.replace(self.places.root, self.engine.layout.root)

    def given(self, arguments: Sequence[bytes]) -> Sequence[bytes]:
        return moved_arguments(arguments, self.engine.layout.root, self.places)

    def remark(self, printed: str) -> str:
        """Say that it was a copy, what it lacked, what was refused for that, and where its path stays."""
        noexec = bool(os.statvfs(self.places.top).f_flag & os.ST_NOEXEC)
        told = hints(printed, self.engine.layout.root, noexec=noexec)
        if names := self._copy.naming(self.places.root):
            told.append(f"the path of this copy, which is removed, stands in place of the root's in {_listed(names)}")
        said = "ran in a copy of the root without a network"
        return "; ".join(filter(None, (said, self._copy.left_out(), *told)))


class CopyInSandbox(CommandLayer):
    """The copy of one command in the sandbox, where the root cannot lie below an overlay."""

    def __init__(self, engine: CommandRunner) -> None:
        """Begin, before the command is started.

        Raises:
            CannotRehearse: there is no copy, and why.
        """
        with ExitStack() as stack:
            root = stack.enter_context(closing(os.open(engine.layout.held, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)))
            layers = engine.layout.layers
            copy = _measured(root, min(engine.copy_mb, engine.layout.scratch_mb))
            try:
                mounts.new("tmpfs", layers, NO_SUID | NO_DEVICES, in_memory(engine.layout.scratch_mb))
                stack.callback(mounts.detach, layers)
                within = stack.enter_context(closing(os.open(layers, DIRECTORY)))
            except OSError as error:
                raise TooMuch(f"there is no room for a copy of the root: {error.strerror}") from error
            self._copy = _Copy(root, within, copy, "memory")
            stack.callback(self._copy.close)
            copied = {"filter": engine.overlay_filter, "ports": engine.overlay_ports}
            engine = msgspec.structs.replace(engine, place=partial(_show_copy, layers), **copied)
            super().__init__(engine, stack.pop_all())

    def layer(self, until: float) -> UpperLayer:
        return self._copy.layer(until)

    def remark(self, _printed: str) -> str:
        """Say that it was a copy, and what it lacked."""
        said = "ran in a copy of the root, whose file system cannot lie below an overlay"
        return "; ".join(filter(None, (said, self._copy.left_out())))


def own_places(engine: CommandRunner, stack: ExitStack, names: int = 0) -> tuple[int, CopyPlaces]:
    """Make the places of one command, with room for so many names; return their directory, and where they are.

    They are gone when the stack is closed.

    Raises:
        TooMuch: there is no room.
    """
    try:
        within = os.open(engine.copies, DIRECTORY)
        with ExitStack() as held:
            held.callback(os.close, within)
            name, directory = draft(within, names)
            held.pop_all()
        stack.callback(_remove, within, name, directory)
        top = os.path.join(engine.copies, name)
        places = CopyPlaces(top, *(os.path.join(top, each) for each in ("root", "home", "tmp", "etc")))
        for each in (places.home, places.tmp, places.etc):
            os.mkdir(each, stat.S_IRWXU)
        _make_files(places, engine.layout)
    except OSError as error:
        raise TooMuch(f"there is no room for a copy of the root: {error.strerror}") from error
    return directory, places


def _make_files(places: CopyPlaces, layout: Layout) -> None:
    """Make what a command in the sandbox has in its /etc and in its home."""
    files = {
        f"{places.etc}/gitconfig": (private_root.git_settings(layout.identity) + _OF_THE_ROOT).encode(),
        f"{places.etc}/{os.path.basename(private_root.AUTHORITIES)}": layout.authorities,
        **{os.path.join(places.home, name): text.encode() for name, text in layout.home_files.items()},
    }
    for path, content in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


def _measured(root: int, most_mb: int) -> TreeCopy:
    try:
        return TreeCopy(root, most_mb)
    except OSError as error:
        raise CannotRehearse(f"the root cannot be looked through to copy it: {error.strerror}") from error


def _made(within: int, name: str) -> int:
    os.mkdir(name, stat.S_IRWXU, dir_fd=within)
    return os.open(name, DIRECTORY, dir_fd=within)


def _not_shown(_path: str) -> None:
    """Nothing: the `Place` of a command that is not shown its copy elsewhere than where it lies."""


def _show_copy(layers: str, path: str) -> None:
    """Show the copy as the root: a `Place`.

    Raises:
        OSError: it cannot be mounted.
    """
    mounts.bind(f"{layers}/root", path)
    mounts.detach(layers)


def _remove(within: int, name: str, directory: int) -> None:
    """Remove the copy, as far as it can be; a later sweep tries again."""
    with closing(within), closing(directory), suppress(OSError):
        os.fchmod(directory, stat.S_IRWXU)
        clear(directory)
        os.rmdir(name, dir_fd=within)
