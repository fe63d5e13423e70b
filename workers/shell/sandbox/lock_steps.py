"""The two tables of this category: how the worker shuts itself in, and how each command is locked in besides.

Rule: what makes the sandbox is in no list of things that one may do without: nothing ever runs bare. The worker keeps
of its powers what it needs to make the next command's places. Its last step locks a process in as a command will be, so
what a command would miss is known before the first one.
"""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from workers.confine import landlock, limits, namespaces, privileges, seccomp
from workers.confine.steps import STEPS, Enforced, ProtectionUnavailable, Step, StepContext
from workers.errors import CannotRehearse
from workers.shell.run import attempts
from workers.shell.run.command import NotStarted, try_locks
from workers.shell.sandbox import command_mounts, machine_root, private_root

if TYPE_CHECKING:
    from workers.shell.command_runner import CommandRunner

_CAP_DAC_OVERRIDE: Final = 1
_CAP_SYS_PTRACE: Final = 19
_CAP_SYS_ADMIN: Final = 21
KEPT: Final = (_CAP_DAC_OVERRIDE, _CAP_SYS_PTRACE, _CAP_SYS_ADMIN)
"""To read what a command has forbidden to its owner, to see how much memory it uses, to mount its places: in our own
namespaces."""

_OF_EVERY_WORKER: Final[Mapping[str, Step]] = MappingProxyType(dict(STEPS))


def _shared(*names: str) -> tuple[tuple[str, Step], ...]:
    return tuple((name, _OF_EVERY_WORKER[name]) for name in names)


# --- the worker ----------------------------------------------------------------------------------------------------


def _sandbox(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    os.fchdir(context.start.root_fd)  # the way to the root that needs no name: it leads into the new namespace
    namespaces.become_first(0 if not engine.layout.machine else namespaces.NEW_NETWORK)
    if engine.network is not None or engine.overlay_ports is None:
        namespaces.raise_loopback()
    return "sandbox"


def _private_root(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    if engine.layout.machine:
        machine_root.build(engine.layout)
        return "private_root:machine"
    private_root.build(engine.layout)
    context.degraded.extend(["machine_view"] * engine.lacks_machine)
    return "private_root"


def _descriptors(context: StepContext) -> str:
    privileges.keep_only((0, 1, 2, *context.keep, *context.prepared.keep))
    return "descriptors"


def _rlimits(context: StepContext) -> str:
    limits.limit(context.start.limits, own_user=True, memory=False, core=1)
    limits.limit_memory_for_now(context.start.limits)
    return "rlimits"


def _few_capabilities(_context: StepContext) -> str:
    privileges.empty_bounding_set()  # for each command as well, so that none has to
    privileges.keep_capabilities(KEPT)
    return "capabilities"


def try_a_command(context: StepContext) -> str:
    """Lock a process in as a command will be, and report what holds it."""
    try:
        held = try_locks(context.prepared.engine, msgspec.json.encode)
    except NotStarted as error:
        failure = error.failure
        raise ProtectionUnavailable(
            failure.feature, OSError(failure.errno, failure.message, failure.what or None)
        ) from error
    enforced = msgspec.json.decode(held, type=Enforced)
    context.held.extend(feature for feature in enforced.features if feature not in context.held)
    context.degraded.extend(enforced.degraded)
    return ""


WORKER: Final[tuple[tuple[str, Step], ...]] = (
    ("sandbox", _sandbox),
    ("private_root", _private_root),
    ("descriptors", _descriptors),
    ("rlimits", _rlimits),
    *_shared("no_new_privs"),
    ("capabilities", _few_capabilities),
    *_shared("undumpable", "parent_death"),
    ("command", try_a_command),
)


# --- a command -----------------------------------------------------------------------------------------------------


def _places(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    command_mounts.arrange(engine.layout, engine.place)
    return "places"


def _all_capabilities(_context: StepContext) -> str:
    privileges.keep_capabilities(())
    privileges.nothing_to_regain()
    return "capabilities"


def _landlock(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    writable = context.start.writable or context.start.plan  # of a plan the overlay is, over a root that is not
    rules = command_mounts.rules(
        engine.layout, context.policy.access(writable=writable), context.policy.access(writable=True)
    )
    try:
        return f"landlock:{landlock.restrict(rules, engine.ports)}"
    finally:
        for rule in rules:
            os.close(rule.descriptor)


def _seccomp(context: StepContext) -> str:
    engine: CommandRunner = context.prepared.engine
    tell = engine.filter.notifying and context.prepared.keep
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC) if tell else -1
    if not tell or not attempts.hand_over(engine.filter.notifying, *context.prepared.keep, own):
        if not engine.filter.plain:
            raise CannotRehearse("the kernel cannot ask the worker")
        seccomp.install(engine.filter.plain)
    return "seccomp"


COMMAND: Final[tuple[tuple[str, Step], ...]] = (
    ("places", _places),
    ("descriptors", _descriptors),
    ("capabilities", _all_capabilities),
    ("landlock", _landlock),
    *_shared(*dict(landlock.PARTS)),
    ("seccomp", _seccomp),
)


# --- the proxy beside a command ------------------------------------------------------------------------------------

PROXY: Final[tuple[tuple[str, Step], ...]] = (
    ("descriptors", _descriptors),
    ("capabilities", _all_capabilities),
    *_shared("landlock", *dict(landlock.PARTS), "seccomp"),
)
