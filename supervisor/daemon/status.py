"""What the daemon says of itself: sessions, workers, protections.

Rule: only what is, read when it is asked for: states from the pools, memory and processor time from the kernel
(proc(5)). A worker is undumpable, so what the kernel tells everybody about it is what there is: resident pages.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import trio

from supervisor.acp import ours
from supervisor.config import Settings
from supervisor.core import OpenPools
from supervisor.daemon.hub import Hub
from supervisor.daemon.talk import Talk
from supervisor.pool.keeper import Keeper
from supervisor.pool.pool import Pool
from supervisor.version import VERSION
from workers.catalog import PROTECTIONS

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass
class About:
    """This daemon."""

    private: bool
    started_at: float = field(default_factory=time.time)
    config_problem: str = ""
    """Why the last reload was refused; what was read before holds."""

    def daemon(self, settings: Settings) -> ours.Daemon:
        """Return who we are."""
        return ours.Daemon(
            pid=os.getpid(),
            version=VERSION,
            home=str(settings.home),
            model=settings.config.model or "",
            profile=settings.config.profile,
            private=self.private,
        )


def report(about: About, hub: Hub, clients: int) -> ours.Status:
    """Return everything."""
    settings = hub.settings
    memory, cpu = usage(os.getpid())
    return ours.Status(
        daemon=about.daemon(settings),
        started_at=about.started_at,
        uptime=round(time.time() - about.started_at, 3),
        clients=clients,
        sessions=[_talk(talk) for talk in hub.talks.values()],
        pools=[_pool(each, category, pool) for each in hub.core.opened for category, pool in each.pools.opened.items()],
        memory=memory,
        cpu=cpu,
        journal=str(settings.journal),
        log=str(settings.logs / "daemon.log"),
        config_problem=about.config_problem,
        protections=PROTECTIONS,
    )


def usage(pid: int) -> tuple[int | None, float | None]:
    """Return a process's resident bytes and its processor seconds; None where it has ended."""
    memory = cpu = None
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            memory = int(file.read().split()[1]) * _PAGE
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    return memory, cpu


def _talk(talk: Talk) -> ours.TalkStatus:
    waiting = next(iter(talk.audience.questions.values()), None)
    return ours.TalkStatus(
        session_id=talk.id,
        profile=talk.profile.name,
        model=talk.model_name,
        root=talk.profile.root,
        state=talk.state.value if talk.busy else "Input",
        turns=talk.turns,
        clients=len(talk.audience.clients),
        origin=talk.origin,
        seconds_in_state=round(trio.current_time() - talk.since, 1),
        waiting_for=(waiting.shown.title or "") if waiting is not None else "",
        title=talk.title,
        context=talk.context,
    )


def _pool(each: OpenPools, category: str, pool: Pool) -> ours.PoolStatus:
    return ours.PoolStatus(
        category=category,
        root=each.profile.root,
        profile=each.profile.name,
        calls=pool.calls,
        p50=pool.median(),
        workers=[_worker(each, category, keeper) for keeper in pool.keepers],
        failed_because=pool.failed_because,
    )


def _worker(each: OpenPools, category: str, keeper: Keeper) -> ours.WorkerStatus:
    pid = keeper.process.pid if keeper.process else None
    memory, cpu = usage(pid) if pid else (None, None)
    return ours.WorkerStatus(
        category=category,
        number=keeper.number,
        root=each.profile.root,
        profile=each.profile.name,
        state=keeper.state.name,
        pid=pid,
        restarts=keeper.restarts,
        last_death=keeper.last_death,
        memory=memory,
        cpu=cpu,
        enforced=tuple(name.partition(":")[0] for name in keeper.enforced),  # "landlock:7": the kernel's ABI
        degraded=keeper.degraded,
    )
