"""The daemon's status: sessions, workers, protections.

Rule: only what is, read when it is asked for: states from the pools, what is used from the kernel
(`supervisor.pool.worker_usage`).
"""

import os
import time
from dataclasses import dataclass, field

import msgspec
import trio

from supervisor.acp import extensions
from supervisor.agent.told_instructions import instructions_line
from supervisor.config.settings import Settings
from supervisor.daemon.protocol.turn_messages import suspension
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.pool.cgroup import inspect_cgroup, problem_of
from supervisor.pool.pool import Pool
from supervisor.pool.worker_slot import WorkerSlot
from supervisor.pool.worker_usage import usage_of_process, usage_of_tree
from supervisor.session.resources import OpenPools
from supervisor.version import VERSION
from workers.catalog import protections


@dataclass
class About:
    """This daemon."""

    private: bool
    started_at: float = field(default_factory=time.time)
    config_problem: str = ""
    """Why the last reload was refused; what was read before holds."""

    def daemon(self, settings: Settings) -> extensions.Daemon:
        return extensions.Daemon(
            pid=os.getpid(),
            version=VERSION,
            home=str(settings.home),
            model=settings.config.model or "",
            profile=settings.config.profile or "",
            private=self.private,
        )


def report(about: About, registry: SessionRegistry, clients: int) -> extensions.Status:
    """Return everything."""
    settings, faults = registry.settings, registry.resources.faults
    own = usage_of_process(os.getpid())
    groups = registry.resources.groups
    return extensions.Status(
        daemon=about.daemon(settings),
        started_at=about.started_at,
        uptime=round(time.time() - about.started_at, 3),
        clients=clients,
        sessions=[_session(session) for session in registry.sessions.values()],
        pools=[
            _pool(each, category, pool)
            for each in registry.resources.opened
            for category, pool in each.pools.opened.items()
        ],
        memory=own.memory,
        cpu=own.cpu,
        cgroups=groups.controllers if groups is not None else (),
        no_cgroups="" if groups is not None else problem_of(inspect_cgroup(os.getpid())) or "the kernel refused them",
        journal=str(settings.journal),
        journal_rows=registry.reader.checked.rows,
        journal_checked_at=registry.reader.checked_at,
        journal_problem=registry.reader.checked.problem,
        log=str(settings.logs / "daemon.log"),
        config_problem=about.config_problem,
        protections=protections(),
        fault_plan=str(faults.plan) if faults else "",
        faults=dict(faults.happened) if faults else {},
    )


def _session(session: OpenSession) -> extensions.OpenSessionStatus:
    waiting = next(iter(session.subscribers.approvals.values()), None)
    return extensions.OpenSessionStatus(
        session_id=session.id,
        profile=session.profile.name,
        model=session.model_name,
        root=session.profile.root,
        state=session.state,
        turns=session.turns,
        clients=len(session.subscribers.clients),
        origin=session.session.opened.origin,
        seconds_in_state=round(trio.current_time() - session.subscribers.since, 1),
        waiting_for=(waiting.shown.title or "") if waiting is not None else "",
        title=session.subscribers.title,
        mode=session.session.mode,
        context=session.context,
        cache_possible=session.subscribers.cache.possible,
        cache_reused=session.subscribers.cache.reused,
        cache_miss=session.subscribers.cache.last_miss,
        options=dict(session.session.reply_options),
        budgets=session.budgets(),
        suspended=None if session.suspended is None else suspension(session.suspended),
        other_model=session.subscribers.projection.other_model,
        narrowed_by=_narrowed_by(session),
        instructions=_instructions(session),
    )


def _instructions(session: OpenSession) -> tuple[str, ...]:
    if session.session.model is None:
        return ()
    return tuple(map(instructions_line, session.session.conversation.transcript.instructions.files.values()))


def _narrowed_by(session: OpenSession) -> str:
    less = session.profile.narrowing
    return "" if less is None else f"{less.file}: {'; '.join(less.told)}"


def _pool(each: OpenPools, category: str, pool: Pool) -> extensions.PoolStatus:
    out, spec = pool.checkout.failure, pool.spec
    return extensions.PoolStatus(
        category=category,
        root=each.profile.root,
        profile=each.profile.name,
        calls=pool.times.calls,
        p50=pool.times.median(),
        workers=[_worker(each, category, slot) for slot in pool.workers.slots],
        failed_because=out.describe(trio.current_time()) if out is not None else pool.workers.failed_because,
        limits=extensions.WorkerLimits(**msgspec.structs.asdict(spec.limits), soft_memory_mb=spec.soft_memory_mb),
        recycled=pool.checkout.recycled,
        view=pool.workers.view,
    )


def _worker(each: OpenPools, category: str, slot: WorkerSlot) -> extensions.WorkerStatus:
    process = slot.process
    return extensions.WorkerStatus(
        category=category,
        number=slot.number,
        root=each.profile.root,
        profile=each.profile.name,
        state=slot.state.name,
        pid=process.pid if process is not None else None,
        restarts=slot.restarts,
        last_death=slot.last_death,
        **(usage_of_tree(process.pid)._asdict() if process is not None else {}),
        cgroup=str(process.cgroup.path) if process is not None and process.cgroup is not None else "",
        enforced=tuple(name.partition(":")[0] for name in slot.enforced),  # "landlock:7": the kernel's ABI
        degraded=slot.degraded,
    )
