"""The ordered table of steps, and the walk along it.

Rule: a step raises OSError when its protection is unavailable, and returns the name under which it is
reported, none where the category does without. It raises ValueError when the protection could be had, and what the
worker is to work on cannot: nobody does without that. Anything else that a step raises is a bug and ends the worker.
"""

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import msgspec

from workers.confine import landlock, limits, mounts, namespaces, privileges, probe, seccomp
from workers.confine.confinements import Confinement
from workers.wire import messages


class ProtectionUnavailable(Exception):
    """A protection is unavailable. `feature` names it as `allow_degraded` does, where one may do without it."""

    def __init__(self, feature: str, error: OSError) -> None:
        word = errno.errorcode.get(error.errno or 0, "no errno")
        what = f"{error.filename}: {word}, {error.strerror}" if error.filename else f"{word}, {error.strerror}"
        known = any(feature == each for each, _ in STEPS)
        without = f", or add {feature!r} to allow_degraded to do without it" if known else ""
        super().__init__(f"the protection {feature!r} is unavailable ({what}): see `strongroom doctor`{without}")
        self.feature = feature


class Enforced(msgspec.Struct, frozen=True):
    """What the kernel holds from here on, and what the operator chose to do without."""

    features: tuple[str, ...]
    degraded: tuple[str, ...]


class Prepared(msgspec.Struct, frozen=True):
    """What a category has made ready before lock-down."""

    engine: Any = None
    """For its tools."""
    rules: tuple[landlock.Beneath, ...] = ()
    """What its tools may reach besides the root."""
    keep: tuple[int, ...] = ()
    """Descriptors that they use."""
    steps: "tuple[tuple[str, Step], ...]" = ()
    """The category's own table, where it has one, instead of `STEPS`."""
    doors: Callable[[Sequence[str]], Iterable[messages.Door]] = probe.try_doors
    """Tries every door but those that it is given, from where the category's work is done."""


_NOTHING: Final = Prepared()


class StepContext(msgspec.Struct, frozen=True):
    """What a step may look at. `keep` are the pipes; they stay open, as 0, 1 and 2 do."""

    policy: Confinement
    start: messages.Start
    keep: tuple[int, ...]
    prepared: Prepared
    held: list[str]
    """The protections that hold already."""
    degraded: list[str]
    """Those that could not be had."""


Step = Callable[[StepContext], str]


def _descriptors(context: StepContext) -> str:
    root = (context.start.root_fd,) if context.policy.has_root else ()
    broker = (context.start.broker_fd,) if context.start.broker_fd >= 0 else ()
    privileges.keep_only((0, 1, 2, *context.keep, *root, *broker, *context.prepared.keep))
    return "descriptors"


def _namespaces(context: StepContext) -> str:
    if not context.policy.namespaces:
        return ""
    user = os.geteuid()  # in there it has another number
    namespaces.leave(context.policy.namespaces)
    if context.policy.namespaces & namespaces.NEW_MOUNTS:
        with suppress(OSError):  # it opens files faster, and locks nothing
            mounts.stand_on_top()
    if context.policy.namespaces & namespaces.NEW_PROCESSES:
        namespaces.go_on_as_first()
        namespaces.end_when_out_of_time()
        namespaces.limit_own_numbers(context.start.limits.processes, needed=user == 0)
    return "namespaces"


def _rlimits(context: StepContext) -> str:
    alone = "namespaces" in context.held
    waiting = alone and context.policy.namespaces & namespaces.NEW_PROCESSES
    limits.limit(context.start.limits, own_user=alone, extra=1 if waiting else 0)
    return "rlimits"


def _landlock(context: StepContext) -> str:
    access = context.policy.access(writable=context.start.writable)
    root = (landlock.Beneath(context.start.root_fd, access),) if context.policy.has_root else ()
    return f"landlock:{landlock.restrict((*root, *context.prepared.rules))}"


def _seccomp(context: StepContext) -> str:
    seccomp.load(context.policy.calls(writable=context.start.writable, plan=context.start.plan))
    return "seccomp"


def _always(feature: str, put_on: Callable[[], None]) -> Step:
    """Return a step that looks at nothing."""

    def step(_context: StepContext) -> str:
        put_on()
        return feature

    return step


STEPS: Final[tuple[tuple[str, Step], ...]] = (
    ("descriptors", _descriptors),
    ("namespaces", _namespaces),
    ("rlimits", _rlimits),
    ("no_new_privs", _always("no_new_privs", privileges.no_new_privs)),
    ("capabilities", _always("capabilities", privileges.drop_capabilities)),
    ("undumpable", _always("undumpable", privileges.undumpable)),
    ("parent_death", _always("parent_death", privileges.check_parent_death)),
    ("landlock", _landlock),
    *((part, _always(part, partial(landlock.need, abi))) for part, abi in landlock.PARTS),
    ("seccomp", _seccomp),
)
"""Every protection of a worker, in the order in which it is put on."""

_PART_OF: Final[Mapping[str, str]] = MappingProxyType({part: "landlock" for part, _ in landlock.PARTS})
"""A part is neither enforced nor asked for when the operator does without the whole."""


def confine(
    policy: Confinement,
    start: messages.Start,
    keep: tuple[int, ...],
    steps: tuple[tuple[str, Step], ...] = STEPS,
    *,
    prepared: Prepared = _NOTHING,
) -> Enforced:
    """Lock this process for good, and say what holds. It must have one thread, and all its imports.

    `keep` are the pipes' descriptors, `prepared` is what its category made ready. Afterwards the process may be
    half confined if this raises: it must end then.

    Raises:
        ProtectionUnavailable: a protection is unavailable, and `start.allow_degraded` does not name it.
        ValueError: what the worker is to work on cannot be used, whatever is allowed.
    """
    features: list[str] = []
    degraded: list[str] = []
    context = StepContext(policy, start, keep, prepared, features, degraded)
    for feature, put_on in prepared.steps or steps:
        if _PART_OF.get(feature) in degraded:
            continue
        try:
            if held := put_on(context):
                features.append(held)
        except OSError as error:
            if feature not in start.allow_degraded and feature not in policy.optional_protections:
                raise ProtectionUnavailable(feature, error) from error
            degraded.append(feature)
    return Enforced(tuple(features), tuple(degraded))
