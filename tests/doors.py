"""Doors: what an attacker's Python tries in the worker of each category, and how it is seen which locks hold it.

Rule: a door is shut under the whole confinement, shut by each of its locks alone (every other lock taken out of the
worker), open with any lock alone that is not among its own, and open with all of them out. So each lock has a test that
fails without it, and no row claims more than is so. A row is tried in the categories that it names. What several
categories share is THE TABLE, `tests/door_table.py`; rows of one category stand with its tests.

What the code finds: `outside`, a home of the supervisor's (its journal, its configuration, what it kept, its socket);
`root_path`, the root, and `top`, a descriptor of it; `victim`, another process of the same user; `port`, `path` and
`abstract`, where somebody listens; `loader`, the dynamic linker.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.raw_worker import RawWorker
from workers.wire import messages

Given = dict[str, str | int]
Locks = tuple[str, ...]

LOCKS: Final[Mapping[str, Locks]] = {
    "files": ("landlock", "seccomp", "capabilities"),
    "search": ("landlock", "seccomp", "namespaces", "capabilities"),
    "web": ("landlock", "seccomp", "namespaces", "capabilities"),
    "media": ("landlock", "seccomp", "namespaces", "capabilities"),
    "restore": ("landlock", "seccomp", "namespaces", "capabilities"),
    "shell": ("landlock", "seccomp", "capabilities"),
    "proxy": ("landlock", "seccomp", "capabilities"),
}
"""What can be taken out of a worker of each category, and of the proxy beside a command."""

SANDBOX: Final = ("sandbox",)
"""The shell worker's namespaces and private root, which cannot be taken out: there, what lies outside is not."""

NOT_THERE: Final = ("passed ENOENT", "passed EROFS", "passed ENETUNREACH", "passed ESRCH", "passed ECONNREFUSED")
"""How namespaces and a tree of one's own say no; every other lock says so itself."""


class Held(NamedTuple):
    """Which locks hold a door, by category; None where it is not tried: it is the category's work, or not there."""

    files: Locks | None = None
    search: Locks | None = None
    web: Locks | None = None
    restore: Locks | None = None
    shell: Locks | None = None
    proxy: Locks | None = None

    @property
    def media(self) -> Locks | None:
        """Those of the web worker, without its broker: it may do less."""
        return self.web


class Door(NamedTuple):
    name: str
    held: Held
    code: str
    as_root: bool = False
    """Whether empty capabilities hold it besides, in a worker that runs as root."""

    def locks(self, category: str) -> Locks:
        """Return what holds it for the user that runs the tests."""
        held: Locks = getattr(self.held, category) or ()
        more = self.as_root and not os.geteuid() and "capabilities" in LOCKS[category]
        return (*held, *(("capabilities",) if more else ()))


def of(category: str, doors: tuple[Door, ...]) -> list[Door]:
    """Return the rows that are tried in a category."""
    return [door for door in doors if getattr(door.held, category) is not None]


def is_shut(outcome: str, category: str) -> bool:
    """Say whether a lock has answered."""
    return outcome.startswith("refused ") or (category != "files" and outcome.startswith(NOT_THERE))


def check(door: Door, category: str, attacked: Callable[[Locks], str]) -> None:
    """Try a door with all locks, with each alone, and with none; `attacked` is told which are taken out."""
    every, own = LOCKS[category], door.locks(category)
    tried = {"all": (), **{lock: tuple(each for each in every if each != lock) for lock in every}, "none": every}
    if os.geteuid():
        tried.pop("capabilities", None)  # empty anyway
    found = {name: attacked(removed) for name, removed in tried.items()}
    shut = {name for name, outcome in found.items() if is_shut(outcome, category)}
    if SANDBOX[0] in own:
        assert shut == set(found), found
    elif os.geteuid():  # who is not root is held by more: modes, powers that nobody has, and a limit of processes
        limited = {name for name, outcome in found.items() if outcome == "passed EAGAIN"}
        assert {"all", *own} <= shut | limited, found
    else:
        assert shut == {"all", *own}, found


def shared_workers(opened: Callable[..., AbstractContextManager[RawWorker]]) -> Iterator[Callable[..., RawWorker]]:
    """Yield what returns the worker that lacks the given locks: opened once, and again when it has ended."""
    with ExitStack() as stack:
        workers: dict[str, RawWorker] = {}

        def worker(*removed: str, **more: bool) -> RawWorker:
            key = repr((sorted(removed), more))
            if key not in workers or workers[key].process.poll() is not None:
                workers[key] = stack.enter_context(opened(*sorted(removed), **more))
                assert isinstance(workers[key].ready, messages.Ready), workers[key].ready
            return workers[key]

        yield worker


def attack(worker: RawWorker, code: str, given: Given) -> str:
    """Run an attacker's Python in a worker; return how it ended."""
    return worker.attack(PRELUDE + code, **given)


# --- what they go for ----------------------------------------------------------------------------------------------


class Target:
    """Everything outside of a root that a row goes for."""

    def __init__(self, base: Path, root: Path, given: Given) -> None:
        self.outside = base / "outside"
        self.root = root
        self._given = given
        self._made: tuple[tuple[str, int], ...] | None = None
        self._victim: subprocess.Popen[bytes] | None = None

    def ready(self) -> Given:
        """Put everything where it was, whatever the last attempt did, and say where."""
        if self._look() != self._made:
            self._make()
            self._made = self._look()
        return {**self._given, "outside": str(self.outside), "root_path": str(self.root), "victim": self._pid()}

    def _look(self) -> tuple[tuple[str, int], ...]:
        """Return what changes with everything that is there."""
        folders = (self.outside, self.outside / "kept", self.root)
        try:
            return tuple((each.path, os.lstat(each).st_ctime_ns) for folder in folders for each in os.scandir(folder))
        except FileNotFoundError:
            return ()

    def _make(self) -> None:
        shutil.rmtree(self.outside, ignore_errors=True)
        (self.outside / "empty").mkdir(parents=True)
        (self.outside / "kept").mkdir()
        for name in ("secret", "journal.db", "config.toml", "kept/pack"):
            (self.outside / name).write_text("swordfish")
        (self.outside / "program").write_text("#!/bin/sh\n")
        (self.outside / "program").chmod(0o755)
        (self.outside / "link").symlink_to("secret")
        for left in ("linked", "hole", "fifo", "secret", "goods", "code", "made", "kept", "link"):
            path = self.root / left
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
        (self.root / "kept").write_text("kept")
        (self.root / "link").symlink_to(self.outside)

    def _pid(self) -> int:
        if self._victim is None or self._victim.poll() is not None:
            self.close()
            self._victim = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env={"SECRET": "swordfish"})
        return self._victim.pid

    def close(self) -> None:
        if self._victim is not None:
            self._victim.kill()
            self._victim.communicate()


@contextmanager
def open_target(base: Path, root: Path) -> Iterator[Target]:
    """Make a target beside a root, with somebody who listens."""
    path, abstract = str(base / "daemon.sock"), str(base)
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as by_path,
        socket.socket(socket.AF_UNIX) as by_name,
    ):
        by_path.bind(path)
        by_path.listen()
        by_name.bind("\0" + abstract)
        by_name.listen()
        loader = next((str(each) for each in Path("/").glob("lib*/ld-*.so*")), "/bin/true")
        given: Given = {"path": path, "abstract": abstract, "port": tcp.getsockname()[1], "loader": loader}
        target = Target(base, root, given)
        try:
            yield target
        finally:
            target.close()
            os.unlink(path)


PRELUDE: Final = """
def in_a_child(deed, *given):
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            deed(*given)
        except OSError as error:
            os.write(theirs, str(error.errno).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    said = os.read(mine, 9)
    os.close(mine)
    os.waitpid(child, 0)
    if said:
        raise OSError(int(said), 'said the child')
def out(name):
    return (outside + '/' + name).encode()
def within(name):
    return (root_path + '/' + name).encode()
def execute(path, *arguments):
    in_a_child(os.execve, path, [path, *(arguments or ['--version'])], {})
def past(number, deed, *given):
    try:
        return deed(*given)
    except OSError as error:
        if error.errno != number:
            raise
def opened(path, flags=os.O_RDONLY, at=None):
    os.close(os.open(path, flags, dir_fd=at))
"""
"""What the code of a row may use besides."""
