"""All checks of `strongroom doctor`, in the order of its table.

Rule: a protection counts when a door was tried from inside a worker and stayed shut, not when a system call said
yes; a library counts when it could be imported. What is only wished for is `degraded`; what Strongroom needs is
`missing`. Whatever is missing, the rest is tried all the same: nothing here is imported that needs more than msgspec.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from supervisor.categories.rows import ROWS
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import running
from supervisor.doctor.cgroups import check_cgroup
from supervisor.doctor.check_result import CheckResult
from supervisor.doctor.libraries import CORE, LibraryCheck, check_libraries, try_libraries
from supervisor.doctor.model_servers import check_models
from supervisor.doctor.places import check_places
from supervisor.errors import ConfigError
from supervisor.pool.cgroup import inspect_cgroup


def run_checks(
    settings: Settings, *, problem: str = "", model: bool = False, tell: Callable[[str], None] = lambda _: None
) -> list[CheckResult]:
    """Try everything; needs no model and no network, but for the `model`'s server where that is asked for.

    Args:
        settings: what is tried with.
        problem: why the configuration does not count, where `settings` are those without one.
        model: whether to ask the model's server.
        tell: is told what is being tried.
    """
    tell("the system")
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
    results = [*_system(), *check_libraries(libraries), *places, *explain_missing_libraries(tried, libraries)]
    if model and without:
        results.append(CheckResult("model", "missing", f"no model can be used without {without}", "See above."))
    elif model:
        tell("the model's server")
        results += check_models(settings)
    return [_unicode(each) for each in results]


def _unicode(result: CheckResult) -> CheckResult:
    """Return it with what is no Unicode written out: a path may be any bytes, and a JSON document may not."""
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
    supported = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    yield CheckResult(
        "kernel",
        "ok" if supported else "missing",
        f"{platform.system()} {platform.release()} on {platform.machine()}",
        "" if supported else "Strongroom confines with Landlock and seccomp: it needs Linux on x86_64 or aarch64.",
    )


def _cgroups(settings: Settings) -> CheckResult:
    """Look at the cgroup of the daemon, or at our own; change nothing."""
    try:
        daemon = running(settings)
    except ConfigError:
        daemon = None
    pid = daemon.pid if daemon is not None else 0
    return CheckResult(
        "cgroups", *check_cgroup(inspect_cgroup(pid or os.getpid()), runs=bool(pid), root=os.geteuid() == 0)
    )
