"""The ordered table of steps, and the walk along it.

Rule: a step raises OSError when its protection cannot be had, and returns the name under which it is
reported, or None when it has nothing of its own to report. Anything else that a step raises is a bug and
ends the worker.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from workers import wire
from workers.confine import landlock, limits, privileges, seccomp
from workers.confine.policy import Confinement


class Missing(Exception):  # noqa: N818 - not a fault of the program: a protection that is not there
    """A protection cannot be had. `feature` names it as `allow_degraded` does."""

    def __init__(self, feature: str, error: OSError) -> None:
        word = errno.errorcode.get(error.errno or 0, "no errno")
        what = f"{error.filename}: {word}, {error.strerror}" if error.filename else f"{word}, {error.strerror}"
        super().__init__(
            f"the protection {feature!r} cannot be had ({what}): see `strongroom doctor`, "
            f"or do without it by naming {feature!r} in allow_degraded"
        )
        self.feature = feature


@dataclass(frozen=True)
class Enforced:
    """What the kernel holds from here on, and what the operator chose to do without."""

    features: tuple[str, ...]
    degraded: tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """What a step may look at. `keep` are the descriptors that stay open, apart from 0, 1 and 2."""

    policy: Confinement
    start: wire.Start
    keep: tuple[int, ...]


Step = Callable[[Order], str | None]


def _descriptors(order: Order) -> str:
    privileges.keep_only((0, 1, 2, order.start.root_fd, *order.keep))
    return "descriptors"


def _rlimits(order: Order) -> str:
    limits.limit(order.start.limits)
    return "rlimits"


def _no_new_privs(_order: Order) -> str:
    privileges.no_new_privs()
    return "no_new_privs"


def _capabilities(_order: Order) -> str:
    privileges.drop_capabilities()
    return "capabilities"


def _undumpable(_order: Order) -> str:
    privileges.undumpable()
    return "undumpable"


def _parent_death(_order: Order) -> str:
    privileges.check_parent_death()
    return "parent_death"


def _landlock(order: Order) -> str:
    access = order.policy.access(writable=order.start.writable)
    return f"landlock:{landlock.restrict(order.start.root_fd, access)}"


def _landlock_part(feature: str, abi: int) -> Step:
    def step(_order: Order) -> str | None:
        return feature if landlock.needs(abi) else None

    return step


def _seccomp(order: Order) -> str:
    seccomp.load(order.policy.calls(writable=order.start.writable))
    return "seccomp"


STEPS: Final[tuple[tuple[str, Step], ...]] = (
    ("descriptors", _descriptors),
    ("rlimits", _rlimits),
    ("no_new_privs", _no_new_privs),
    ("capabilities", _capabilities),
    ("undumpable", _undumpable),
    ("parent_death", _parent_death),
    ("landlock", _landlock),
    *((feature, _landlock_part(feature, abi)) for feature, abi in landlock.PARTS),
    ("seccomp", _seccomp),
)
"""Every protection of a worker, in the order in which it is put on."""


def confine(
    policy: Confinement,
    start: wire.Start,
    keep: tuple[int, ...],
    steps: tuple[tuple[str, Step], ...] = STEPS,
) -> Enforced:
    """Lock this process for good, and say what holds. It must have one thread, and all its imports.

    `keep` are the descriptors that stay open besides 0, 1, 2 and the root. Afterwards the process may be half
    confined if this raises: it must end then.

    Raises:
        Missing: a protection cannot be had, and `start.allow_degraded` does not name it.
    """
    order = Order(policy, start, keep)
    features: list[str] = []
    degraded: list[str] = []
    for feature, step in steps:
        try:
            reported = step(order)
        except OSError as error:
            if feature not in start.allow_degraded:
                raise Missing(feature, error) from error
            degraded.append(feature)
        else:
            if reported is not None:
                features.append(reported)
    return Enforced(tuple(features), tuple(degraded))
