"""All checks of `strongroom doctor`, in the order of its table.

Rule: a protection counts when a door was tried from inside a worker and stayed shut, not when a system call said
yes; a library counts when it could be imported. What is only wished for is `degraded`; what Strongroom needs is
`missing`. Whatever is missing, the rest is tried all the same: nothing here is imported that needs more than msgspec.
Nothing is sent anywhere unless it was asked for, but to mirrors that the configuration names.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from supervisor.categories.rows import ROWS
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.settings import Settings
from supervisor.doctor.libraries import CORE, LibraryCheck, check_libraries, try_libraries
from supervisor.doctor.places import check_places, daemon_of
from supervisor.doctor.registries import RegistryChecks
from supervisor.doctor.table import CheckResult
from supervisor.pool.cgroup import CONTROLLERS, CgroupInfo, inspect_cgroup, problem_of
from supervisor.system.foreign_files import ADVICE, foreign_files


def run_checks(
    settings: Settings, *, problem: str = "", model: str | None = None, tell: Callable[[str], None] = lambda _: None
) -> list[CheckResult]:
    """Try everything; needs no model and no network, but for the `model`'s server where that is asked for.

    Args:
        settings: what is tried with.
        problem: why the configuration does not count, where `settings` are those without one.
        model: of which to try a turn; with "", the servers of models are asked whether they take the key.
        tell: is told what is being tried.
    """
    tell("the system")
    registries = RegistryChecks(settings)
    trying = try_libraries()
    core = list(islice(trying, len(CORE)))  # the others are imported meanwhile
    places = [*check_places(settings, problem), _cgroups(settings)]
    if without := " and ".join(each.library.name for each in core if each.problem):
        advice = f"Nothing can be said of the protections before {without} can be imported: see above."
        tried = [CheckResult("workers", "missing", f"none can be started without {without}", advice)]
    else:
        tried = list(_workers(settings, tell))
    tell("the libraries")
    libraries = [*core, *trying]
    results = [*_system(), *check_libraries(libraries), *places, *registries.results()]
    results += explain_missing_libraries(tried, libraries)
    if not without:
        results.append(check_turn(settings))
    if model is not None and without:
        results.append(CheckResult("model", "missing", f"no model can be used without {without}", "See above."))
    elif model == "":
        tell("the model's server")
        results += check_models(settings)
    elif model:
        from supervisor.doctor.model_trial import try_model  # it needs trio

        tell(f"a turn with {model}")
        results += try_model(settings, model)
    return [as_unicode(each) for each in results]


def as_unicode(result: CheckResult) -> CheckResult:
    """Return a result with what is no Unicode written out: a path may be any bytes, and a JSON document may not."""
    detail, advice = (text.encode("utf-8", "backslashreplace").decode() for text in (result.detail, result.advice))
    return msgspec.structs.replace(result, detail=detail, advice=advice)


def _workers(settings: Settings, tell: Callable[[str], None]) -> Iterator[CheckResult]:
    from supervisor.doctor.workers import check_category  # it needs trio

    for category in ROWS:
        tell(f"the {category} worker")
        yield from check_category(settings, category)


def explain_missing_libraries(
    results: Iterable[CheckResult], libraries: Sequence[LibraryCheck]
) -> Iterator[CheckResult]:
    """Let a worker that lacks a library say so: it dies of that before it can."""
    for result in results:
        row = ROWS.get(result.subject.removesuffix(" worker"))
        lacks = [each.library.name for each in libraries if each.problem and row and each.library in row.libraries]
        if result.verdict == "missing" and lacks:
            names = " and ".join(lacks)
            yield msgspec.structs.replace(result, advice=f"It cannot work without {names}: see above.")
        else:
            yield result


def _system() -> Iterator[CheckResult]:
    yield CheckResult("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield from check_environment(foreign_files())
    supported = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    yield CheckResult(
        "kernel",
        "ok" if supported else "missing",
        f"{platform.system()} {platform.release()} on {platform.machine()}",
        "" if supported else "Strongroom confines with Landlock and seccomp: it needs Linux on x86_64 or aarch64.",
    )


def check_environment(foreign: str) -> Iterator[CheckResult]:
    """Say what another program's files among ours mean; nothing where there are none."""
    if foreign:
        yield CheckResult("environment", "degraded", foreign, ADVICE)


_MODELS: Final = "`strongroom models` lists what can be used; set `model` in the configuration."
_OFFLINE: Final = "Until then the offline model answers, which is no language model."
_MEANS: Final = "The kernel limits each process (rlimits), but not all processes of a worker together."
_ROOT: Final = (
    "For root the number of processes is not limited: without namespaces, a search worker may start any number."
)
_DO: Final = (
    "Run the daemon as a service (strongroom daemon --print-unit), or by: "
    "systemd-run --user --scope -p Delegate=yes strongroom daemon"
)
_ASK: Final = "Delegate them to it: set Delegate=memory pids in its unit and in the units above it."


def _cgroups(settings: Settings) -> CheckResult:
    """Look at the cgroup of the daemon, or at our own; change nothing."""
    daemon = daemon_of(settings)
    pid = daemon.pid if daemon is not None else 0
    return check_cgroup(inspect_cgroup(pid or os.getpid()), runs=bool(pid), root=os.geteuid() == 0)


def check_cgroup(found: CgroupInfo, *, runs: bool, root: bool) -> CheckResult:
    """Say whether each worker gets one. Without them nothing is missing: see `supervisor.pool.cgroup`.

    Args:
        found: what the cgroup of the daemon is like; where none runs, of this process, which would start one.
        runs: whether a daemon runs.
        root: whether it runs as root, which the kernel exempts from the limit of processes (getrlimit(2)).
    """
    who = "the daemon that runs" if runs else "a daemon started from here"
    lacking = [each for each in CONTROLLERS if each not in found.controllers]
    means = f"{_MEANS} {_ROOT}" if root and (problem_of(found) or "pids" in lacking) else _MEANS
    if why := problem_of(found):
        return CheckResult(
            "cgroups", "degraded", f"the workers of {who} get no cgroups of their own: {why}. {means}", _DO
        )
    if lacking:
        detail = f"each worker of {who} gets a cgroup, without {' and '.join(lacking)}. {means}"
        return CheckResult("cgroups", "degraded", detail, _ASK)
    detail = f"each worker of {who} gets a cgroup: the kernel limits its memory and its processes together"
    return CheckResult("cgroups", "ok", detail)


def check_turn(settings: Settings) -> CheckResult:
    """Say what a turn would lack: a model of that name, or a key for it. Nobody is asked."""
    from supervisor.agent.models.key_choice import SOURCES, source_of
    from supervisor.agent.models.providers import provider_of

    name = settings.config.model or DEFAULT_MODEL
    row = provider_of(name, settings)
    if row is None:
        return CheckResult("turn", "degraded", f"there is no model {name!r}", f"{_MODELS} {_OFFLINE}")
    if not row.is_available(settings):
        return CheckResult("turn", "degraded", f"the model {name} has no key", f"{row.key_advice}. {_OFFLINE}")
    key = SOURCES[source_of(row, settings)] if row.key else "it needs no key"
    return CheckResult("turn", "ok", f"{name} is asked, {key}; --model asks its server whether that is right")


def check_models(settings: Settings) -> list[CheckResult]:
    """Ask the server of each provider that has a key or a server of its own set, else the default model's."""
    from supervisor.agent.models.providers import provider_of, rows
    from supervisor.agent.models.server_check import checked

    chosen = [row for row in rows() if row.key_in(settings) or settings.variable(row.server)]
    default = provider_of(DEFAULT_MODEL)
    asked = chosen or ([default] if default is not None else [])
    return [CheckResult("model", *checked(row, settings)[:3]) for row in asked if row.format is not None]
