"""The check of cgroups: whether each worker gets one, what that means, what to do.

Rule: pure. Without cgroups nothing is missing: every limit of a process holds, and commands are watched; what a worker
and its processes use together is then limited by polling, not by the kernel.
"""

from typing import Final, Literal

from supervisor.pool.cgroup import CONTROLLERS, CgroupInfo, problem_of

_MEANS: Final = "The kernel limits each process (rlimits), but not what a worker's processes use together."
_ROOT: Final = "It exempts root from the limit of processes: without namespaces, a search worker may start any number."
_DO: Final = (
    "Run the daemon as a service (strongroom daemon --print-unit), or so: "
    "systemd-run --user --scope -p Delegate=yes strongroom daemon"
)
_ASK: Final = "Let whoever started it delegate them too: Delegate=memory pids in its unit, and the same in those above."


def check_cgroup(found: CgroupInfo, *, runs: bool, root: bool) -> tuple[Literal["ok", "degraded"], str, str]:
    """Return the verdict, the detail and the advice.

    Args:
        found: what the cgroup of the daemon is like; where none runs, of this process, which would start one.
        runs: whether a daemon runs.
        root: whether it runs as root, which the kernel exempts from the limit of processes (getrlimit(2)).
    """
    who = "the daemon that runs" if runs else "a daemon started from here"
    means = f"{_MEANS} {_ROOT}" if root and (problem_of(found) or "pids" not in found.controllers) else _MEANS
    if why := problem_of(found):
        return "degraded", f"the workers of {who} get none: {why}. {means}", _DO
    lacking = [each for each in CONTROLLERS if each not in found.controllers]
    if lacking:
        return "degraded", f"the workers of {who} get one each, without {' and '.join(lacking)}. {means}", _ASK
    return "ok", f"each worker of {who} gets one: the kernel limits its memory and its processes together", ""
