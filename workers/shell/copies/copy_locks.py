"""Locks of worker and command where there are no namespaces: Landlock, a filter, and the worker's own answers.

Rule: nothing of this can be done without, whatever the operator allows: where the kernel is too old for a part, no
command runs. A command reads and executes the system's programs, the toolchains and the root itself, and writes its
copy, its home and its temporary files; the machine's /tmp is not there for it. The worker is held by the same rights
and the root's; commands are nested in its Landlock domain, so that it may look into them and they into nobody.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from workers import kernel
from workers.commit.staging_directory import sweep
from workers.confine import denylist, landlock, limits, privileges, seccomp
from workers.confine.command_policy import ASKED_IN_A_COPY, FAMILIES, FORKS, IN_A_COPY
from workers.confine.denylist import Deny, Notify
from workers.confine.landlock import Beneath
from workers.confine.steps import STEPS, ProtectionUnavailable, Step, StepContext
from workers.shell.command_runner import CommandRunner, Filter
from workers.shell.look import TOLD
from workers.shell.run import attempts
from workers.shell.run.attempts import notify_sockets
from workers.shell.run.process_group import DescendantGroup, become_subreaper
from workers.shell.sandbox.lock_steps import try_a_command
from workers.shell.sandbox.private_root import Layout, of_etc
from workers.shell.shell_inputs import SYSTEM
from workers.tree.root import DIRECTORY, closing

_READ: Final = landlock.READ_FILE | landlock.READ_DIR
_RUN: Final = _READ | landlock.EXECUTE
_USE: Final = landlock.READ_FILE | landlock.WRITE_FILE | landlock.IOCTL_DEV
_ANY_FILE_MB: Final = 2**40
"""What the root has is copied, however large each file is."""
_DEVICES: Final = ("full", "null", "random", "urandom", "zero")
_ETC: Final = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts")
"""What of /etc is read: it holds no secret."""

_OF_EVERY_WORKER: Final[Mapping[str, Step]] = MappingProxyType(dict(STEPS))


def _filter(*asked: Notify) -> Filter:
    """Return what a command may not do, and for what the worker is asked; there is no filter without that."""
    rows: tuple[Deny | Notify, ...] = (*IN_A_COPY, notify_sockets(FAMILIES), *asked)
    return Filter(b"", seccomp.packed(denylist.assemble(rows, kernel.MACHINE)))


def in_copies(engine: CommandRunner, copies: str) -> CommandRunner:
    """Return what runs each command in a copy, in a directory that is made if need be.

    Raises:
        ValueError: it is not this user's alone.
        OSError: it cannot be made.
    """
    os.makedirs(copies, stat.S_IRWXU, exist_ok=True)
    status = os.lstat(copies)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise ValueError(f"{copies} must be a directory of this user's, in which no other may write: move it away")
    with closing(os.open(copies, DIRECTORY)) as directory:
        sweep(directory)  # what workers left that were killed
    changing = _filter(*map(Notify, ASKED_IN_A_COPY))
    return msgspec.structs.replace(
        engine,
        start=msgspec.structs.replace(engine.start, allow_degraded=()),
        locks=COPY_COMMAND,
        overlay_filter=changing,
        filter=changing,
        look_filter=_filter(*map(Notify, FORKS), *TOLD),
        network=None,
        copies=os.path.realpath(copies),
        group=DescendantGroup,
    )


def _shared(*names: str) -> tuple[tuple[str, Step], ...]:
    return tuple((name, _OF_EVERY_WORKER[name]) for name in names)


def _system(layout: Layout) -> Iterable[tuple[str, int]]:
    return (
        *((path, _RUN) for path in (*SYSTEM, *layout.toolchains)),
        *((path, _READ) for path in (*of_etc(), *_ETC)),
        ("/proc", _READ),
        *((f"/dev/{name}", _USE) for name in _DEVICES),
    )


def _restrict(paths: Iterable[tuple[str, int]], *others: Beneath) -> str:
    opened = []
    try:
        for path, access in paths:
            if os.path.exists(path):
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
                opened.append(Beneath(descriptor, access if os.path.isdir(path) else access & landlock.OF_FILES))
        return f"landlock:{landlock.restrict((*opened, *others))}"
    finally:
        for each in opened:
            os.close(each.descriptor)


# --- the worker ----------------------------------------------------------------------------------------------------


def _copy(_context: StepContext) -> str:
    become_subreaper()
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        raise ProtectionUnavailable("copy", OSError(0, "the kernel does not list the children of a process", "/proc"))
    return "copy"


def _descriptors(context: StepContext) -> str:
    privileges.keep_only((0, 1, 2, *context.keep, context.start.root_fd, *context.prepared.keep))
    return "descriptors"


def _rlimits(context: StepContext) -> str:
    limits.limit(msgspec.structs.replace(context.start.limits, file_mb=_ANY_FILE_MB), memory=False, core=1)
    limits.limit_memory_for_now(context.start.limits)
    return "rlimits"


def _landlock_of_worker(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    root = context.policy.access(writable=context.start.writable) | landlock.EXECUTE
    copies = (engine.copies, context.policy.access(writable=True))
    return _restrict((*_system(engine.layout), copies), Beneath(context.start.root_fd, root))


COPY_WORKER: Final[tuple[tuple[str, Step], ...]] = (
    ("copy", _copy),
    ("descriptors", _descriptors),
    ("rlimits", _rlimits),
    *_shared("no_new_privs", "capabilities", "undumpable", "parent_death"),
    ("landlock", _landlock_of_worker),
    ("command", try_a_command),
)


# --- a command -----------------------------------------------------------------------------------------------------


def _rlimits_of_command(context: StepContext) -> str:
    limits.limit(context.start.limits, memory=False, core=1)
    return "rlimits"


def _places(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    if _looks(engine):
        os.fchdir(context.start.root_fd)
    elif engine.copied is not None:
        os.chdir(engine.copied.root)
    return "places"


def _descriptors_of_command(context: StepContext) -> str:
    privileges.keep_only((0, 1, 2, *context.keep, context.start.root_fd, *context.prepared.keep))
    return "descriptors"


def _landlock_of_command(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    own: Iterable[tuple[str, int]] = ()
    if engine.copied is not None:
        access = context.policy.access(writable=True)
        written = () if _looks(engine) else engine.copied[1:4]
        own = (*((each, _READ) for each in engine.copied[2:]), *((each, access) for each in written))
    return _restrict((*_system(engine.layout), *own), Beneath(context.start.root_fd, _RUN))


def _looks(engine: CommandRunner) -> bool:
    """Say whether a command sees the root itself, and only looks at it."""
    return engine.copied is not None and engine.copied.root == engine.layout.root


def _seccomp(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    told = context.prepared.keep
    if not told:  # it is only tried
        os.close(seccomp.install_with_listener(engine.filter.notifying))
    elif not attempts.hand_over(engine.filter.notifying, *told):
        raise OSError(0, "nobody can be asked about what a command starts", "seccomp")
    return "seccomp"


COPY_COMMAND: Final[tuple[tuple[str, Step], ...]] = (
    ("places", _places),
    ("descriptors", _descriptors_of_command),
    ("rlimits", _rlimits_of_command),
    *_shared("capabilities"),
    ("landlock", _landlock_of_command),
    *_shared(*dict(landlock.PARTS)),
    ("seccomp", _seccomp),
)
