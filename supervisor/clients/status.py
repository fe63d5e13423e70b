"""`strongroom status`: the daemon, its sessions and workers, and what the kernel enforces.

Rule: looking starts nothing. `status_text` is pure: a status and a width in, plain and harmless text out.
"""

from collections.abc import Iterator
from typing import Any, Final

from supervisor.acp import extensions
from supervisor.clients.connection.link import every_field
from supervisor.clients.connection.link_events import decline
from supervisor.clients.connection.patience import USUAL, Patience
from supervisor.clients.connection.start import connect_running
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import running
from supervisor.display.columns import cut, wrapped
from supervisor.display.escape import visible
from supervisor.errors import DaemonLost

NONE_RUNS: Final = "no daemon runs"

_KIB: Final = 1024
_UNITS: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
"""Seconds of a unit and of the next smaller one, with their names."""
_SOON: Final = 10.0
"""Seconds below which a tenth matters."""
_FIELD: Final = 12
"""Characters of a field's name, with the space after it."""
_VIEWS: Final = {
    "machine": "view: this machine, to look at",
    "private": "view: private, the root and programs alone",
    "copies": "view: a copy of the root for each command, without a network, as no sandbox can be made here",
}
"""What commands see besides the root."""


def look(settings: Settings, patience: Patience = USUAL) -> extensions.Status | None:
    """Return how things are; None where no daemon runs.

    Raises:
        StrongroomError: there is one, and it does not say.
    """
    connected = connect_running(settings, decline, "status", patience)
    if connected is None:
        return None
    with connected:
        try:
            return connected.link.request(extensions.STATUS_METHOD, {}, extensions.Status)
        except DaemonLost:
            if running(settings, named=False) is None:
                return None  # it has ended just now
            raise


def as_json(status: extensions.Status) -> dict[str, Any]:
    """Return the status as scripts read it: "running", and every field there is, whatever its value."""
    return {"running": True, **every_field(status)}


def status_text(status: extensions.Status, width: int) -> str:
    """Return the status as lines of at most `width` columns. Those that begin with a letter are headings."""
    lines: list[str] = []
    if status.config_problem:
        lines += ["Configuration problem", *_wrapped(status.config_problem, width), ""]
    if status.fault_plan:
        lines += ["Fault injection is on", *_wrapped(f"workers fail as {status.fault_plan} says", width)]
        happened = ", ".join(f"{name} {_count(times, 'time')}" for name, times in status.faults.items())
        lines += [*_wrapped(f"so far: {happened or 'nothing'}", width), ""]
    lines += _daemon(status, width)
    lines += ["", f"Sessions ({len(status.sessions)})"]
    for session in status.sessions:
        lines += _session(session, width)
    workers = [worker for pool in status.pools for worker in pool.workers]
    lines += ["", f"Workers ({len(workers)})"]
    for pool in status.pools:
        lines += _pool(pool, width)
    lines += ["", "Protections", *_protections(status, workers, width), *_limited_by(status, width)]
    return "\n".join(lines)


def _daemon(status: extensions.Status, width: int) -> Iterator[str]:
    daemon = status.daemon
    private = ", private" if daemon.private else ""
    heading = f"Strongroom {daemon.version}, pid {daemon.pid}{private}, up {_duration(status.uptime)}"
    yield from wrapped(f"{heading}, {_count(status.clients, 'client')}", width, rest="  ")
    yield from _field(
        "default", f"profile {daemon.profile or 'of the directory'}, model {daemon.model or DEFAULT_MODEL}", width
    )
    used = [_size(status.memory), f"CPU {_duration(status.cpu)}" if status.cpu is not None else ""]
    yield from _field("uses", ", ".join(filter(None, used)), width)
    for name, place in (("home", daemon.home), ("journal", status.journal), ("log", status.log)):
        yield from _field(name, place, width)
    if status.journal_checked_at:
        ago = _duration(max(0.0, status.started_at + status.uptime - status.journal_checked_at))
        found = f"broken: {status.journal_problem}; see `strongroom verify`" if status.journal_problem else "whole"
        yield from _field("chain", f"{found}, {_count(status.journal_rows, 'row')} compared {ago} ago", width)


def _session(session: extensions.OpenSessionStatus, width: int) -> Iterator[str]:
    state = f"{session.state} for {_duration(session.seconds_in_state)}"
    yield from _wrapped(f"{session.session_id}  {state}", width)
    yield from (f"    instructions {cut(file, width - 17)}" for file in session.instructions)
    if session.narrowed_by:
        yield f"    narrowed by {cut(session.narrowed_by, width - 16)}"
    if session.title:
        yield f"    {cut(session.title, width - 4)}"
    mode = "" if session.mode == "edits" else f" in {session.mode} mode"
    model = f"{session.other_model} in place of {session.model}" if session.other_model else session.model or "no model"
    where = f"{session.profile}{mode} on {session.root}, {model}"
    yield from _wrapped(where, width, "    ")
    names = [f"{name} {value}" for name, value in session.context.items() if name != "working_directory"]
    names += [f"{name} {value}" for name, value in session.options.items()]
    yield from _wrapped(", ".join(names), width, "    ")
    who = f"{_count(session.turns, 'turn')}, {_count(session.clients, 'client')}, opened for {session.origin}"
    yield from _wrapped(who, width, "    ")
    if session.cache_possible:
        share = 100 * session.cache_reused / session.cache_possible
        known = f"prompt cache: {share:.0f} % of {session.cache_possible} tokens that could come from it"
        yield from _wrapped(f"{known}; last miss: {session.cache_miss}" if session.cache_miss else known, width, "    ")
    if session.suspended is not None:
        from supervisor.display.clock_time import clock_time

        until = f", until {clock_time(session.suspended.until)}" if session.suspended.until else ""
        yield from _wrapped(f"suspended{until}: {session.suspended.why}", width, "    ")
    for each in session.budgets:
        yield from _wrapped(f"budget of the {each.of}: {each.used}", width, "    ")
    waits = session.waiting_for and f"waits for a person to decide about {session.waiting_for}"
    yield from _wrapped(waits, width, "    ")


def _pool(pool: extensions.PoolStatus, width: int) -> Iterator[str]:
    speed = f", p50 {_instant(pool.p50)}" if pool.p50 is not None else ""
    recycled = f", {pool.recycled} recycled" if pool.recycled else ""
    calls = f"{_count(pool.calls, 'call')}{speed}{recycled}"
    yield from _wrapped(f"{pool.category} on {pool.root} ({pool.profile}): {calls}", width)
    if pool.limits is not None:
        yield from _wrapped(f"limits: {', '.join(_limits(pool.limits))}", width, "    ")
    yield from _wrapped(_VIEWS.get(pool.view, ""), width, "    ")
    yield from _wrapped(pool.failed_because and f"failed: {pool.failed_because}", width, "    ")
    for worker in pool.workers:
        facts = [
            f"pid {worker.pid}" if worker.pid is not None else "no process",
            worker.state,
            _count(worker.restarts, "restart"),
            *_used(worker, pool.limits),
            "cgroup" if worker.cgroup else "",
        ]
        yield from _wrapped(f"{worker.number}: {', '.join(filter(None, facts))}", width, "    ")
        yield from _wrapped(worker.last_death and f"last death: {worker.last_death}", width, "       ")


def _limits(limits: extensions.WorkerLimits) -> Iterator[str]:
    soft = f" ({limits.soft_memory_mb} between calls)" if limits.soft_memory_mb else ""
    yield f"memory {limits.memory_mb} MiB{soft}"
    yield f"CPU {_duration(limits.cpu_s)}"
    yield f"{limits.open_files} open files"
    yield f"{limits.file_mb} MiB a file"
    yield f"{limits.processes or 'no'} processes besides its own"
    yield "no core dumps"


def _used(worker: extensions.WorkerStatus, limits: extensions.WorkerLimits | None) -> Iterator[str]:
    """Yield what a worker uses, each with its limit where that is told."""
    memory = worker.memory if worker.private is None else worker.private
    if memory is not None:
        yield f"memory {memory / _KIB / _KIB:.1f}{f' of {limits.memory_mb}' if limits else ''} MiB"
    if worker.cpu is not None:
        yield f"CPU {_duration(worker.cpu)}{f' of {_duration(limits.cpu_s)}' if limits else ''}"
    if worker.open_files is not None:
        yield f"{worker.open_files}{f' of {limits.open_files}' if limits else ''} open files"
    if worker.processes is not None:
        yield f"{worker.processes} process{'es' if worker.processes != 1 else ''}"


def _protections(status: extensions.Status, workers: list[extensions.WorkerStatus], width: int) -> Iterator[str]:
    confined = [worker for worker in workers if worker.enforced or worker.degraded]
    if not confined:
        yield from _wrapped("no worker runs now; `strongroom doctor` tries every protection", width)
        return
    names = dict.fromkeys([*status.protections, *(name for worker in confined for name in worker.enforced)])
    everywhere = [name for name in names if all(name in worker.enforced for worker in confined)]
    yield from _field("in force", ", ".join(everywhere), width)
    for name in names:
        without = [worker for worker in confined if name not in worker.enforced]
        holders = dict.fromkeys(worker.category for worker in confined if name in worker.enforced)
        whole = [category for category in holders if category not in {worker.category for worker in without}]
        if without and whole:
            yield from _field("besides", f"{name} in {', '.join(whole)}", width)
        for word, lacking in (
            ("DEGRADED", [each for each in without if name in each.degraded]),
            ("MISSING", [each for each in without if name not in each.degraded and each.category in holders]),
        ):
            if lacking:
                where = ", ".join(f"{each.category} {each.number}" for each in lacking)
                yield from _field(word, f"{name} in {where}", width)


def _limited_by(status: extensions.Status, width: int) -> list[str]:
    if status.no_cgroups:
        text = f"each process's own (rlimits) alone: {status.no_cgroups}"
    else:
        controllers = ", ".join(status.cgroups) or "for its end alone: it has no controllers"
        text = f"each process's own (rlimits), and each worker's cgroup ({controllers})"
    return _field("limits", text, width)


def _field(name: str, text: str, width: int) -> list[str]:
    return wrapped(visible(text), width, f"  {name}".ljust(_FIELD), " " * _FIELD) if text else []


def _wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    return wrapped(visible(text), width, indent, f"{indent}  ") if text else []


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _size(number: int | None) -> str:
    return "" if number is None else f"{number / _KIB / _KIB:.1f} MiB"


def _instant(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"  # noqa: PLR2004 - units


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _SOON else duration(seconds)


def duration(seconds: float) -> str:
    """Return how long something takes, in its two largest units."""
    whole = int(seconds)
    for length, name, part, part_name in _UNITS:
        if whole >= length:
            return f"{whole // length} {name} {whole % length // part} {part_name}"
    return f"{whole} s"
