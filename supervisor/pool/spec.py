"""Child specs: all that a pool needs to know to start and keep the workers of one category.

Rule: data only. The words are OTP's (https://www.erlang.org/doc/system/sup_princ): child spec, intensity,
period; the one strategy is one_for_one.
"""

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from supervisor.config.fault_plan import RunningFaultPlan
from supervisor.pool.cgroup import WorkerCgroups
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_cap import WorkerCap
from supervisor.pool.worker_template import WorkerTemplate
from supervisor.system.descendants import Orphans
from workers.wire.messages import Context, Inputs, Limits


@dataclass(frozen=True)
class Restart:
    """Limits on how often a category's workers may die by themselves before it is FAILED for a while.

    More than `intensity` deaths within `period` seconds: the category is FAILED for `pause` seconds, then tried
    again. Waits between restarts double from `first_backoff` to `longest_backoff` seconds.
    """

    intensity: int = 5
    period: float = 30.0
    pause: float = 30.0
    first_backoff: float = 0.05
    longest_backoff: float = 5.0
    jitter: float = 0.25
    """The share of a wait that chance may take off it, so that workers that died together do not start together."""


Broker = Callable[[socket.socket, Callable[[], int]], Awaitable[None]]
"""Serves one worker on its socket (SOCK_SEQPACKET, owned by the caller), until end of file or cancelled. The second
argument says which call the worker runs, by its id; 0 when it runs none. It raises nothing for what the worker says;
when it returns, the worker is ended."""


@dataclass(frozen=True)
class ChildSpec:
    """One category's workers on one root. Times are in seconds."""

    category: str
    context: Context
    writable: bool = True
    tools: tuple[str, ...] = ()
    """What `Ready` must name, in any order."""
    limits: Limits = field(default_factory=Limits)
    soft_memory_mb: int = 0
    """A worker that holds more between two calls is replaced; 0 is never."""
    disk_mb: int = 0
    """What its commands may write into memory as if it were a disk."""
    groups: WorkerCgroups | None = None
    """Where the workers' cgroups are made; None where there can be none."""
    orphans: Orphans | None = None
    """Kills what dead workers left behind; None in a process that has children of its own."""
    allow_degraded: tuple[str, ...] = ()
    workers: int = 4
    """The most that run at once for calls; one more is kept as the warm spare, unless the cap says no."""
    cap: WorkerCap = field(default_factory=WorkerCap)
    """Counts these workers together with those of other specs that have the same one."""
    call_timeout: float = 30.0
    decide_timeout: float = 180.0
    """For sending what a commit replaces, and for the commit itself; each."""
    commit_grace: float = 30.0
    """That a commit has left when its caller is cancelled; then its worker is ended."""
    start_timeout: float = 10.0
    stop_timeout: float = 1.0
    """For leaving after the end of its input; then it gets SIGTERM. All workers of a pool share it."""
    terminate_timeout: float = 0.25
    """For ending after SIGTERM; then it gets SIGKILL."""
    idle_timeout: float = 60.0
    """After so long without need, all workers but one and its spare are retired."""
    inputs: Inputs = field(default_factory=Inputs)
    """What the category's workers need besides the root."""
    stands_on: str = ""
    """A directory besides the root that workers open as they start: where its path leads to another one by now, others
    are started in their place."""
    broker: Broker | None = None
    """Answers a worker that asks for connections; None where the category has none to ask for."""
    faults: RunningFaultPlan | None = None
    """Those that the command line asked for."""
    restart: Restart = field(default_factory=Restart)
    command: tuple[str, ...] = field(default_factory=worker_command)
    plan: bool = False
    """Its workers rehearse, and commit nothing: the root is read-only to them."""
    template: WorkerTemplate | None = None
    """Forks workers of that command; None where each is spawned."""
