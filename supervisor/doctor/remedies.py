"""Remedies of `strongroom doctor` for workers that refuse to serve, or serve with a protection less.

Rule: data, and pure. A row says how to get the protection, and what a worker can do without it; a worker's own words
are shown without hints that only lead back to doctor.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from supervisor.categories.rows import ROWS
from supervisor.config.settings import Settings
from supervisor.doctor.namespaces import namespace_remedy
from workers.catalog import PROTECTIONS


class Remedy(NamedTuple):
    """How a protection is had, and what a worker that was taken over can do without it."""

    had: str
    given_up: str = ""


def _calls(names: str) -> str:
    return f"In a container it may be its seccomp profile that forbids it: allow {names} there."


_OLDER: Final = "It is a part of Landlock that came with Linux {}: a newer kernel has it."
_LSM: Final = (
    "Landlock is there from Linux 5.13 on, where the kernel was built with it (CONFIG_SECURITY_LANDLOCK) and booted "
    "with it (EOPNOTSUPP: it was not). Look at /sys/kernel/security/lsm, and put landlock into the list of the boot "
    "option, as in lsm=landlock,lockdown,yama,integrity,apparmor,bpf. "
)

PROTECTION: Final[Mapping[str, Remedy]] = MappingProxyType(
    {
        "descriptors": Remedy(
            "close_range(2) is there from Linux 5.11 on. " + _calls("close_range"),
            "it keeps whatever descriptors it was started with.",
        ),
        "rlimits": Remedy(
            "Only a filter of system calls refuses to lower limits. " + _calls("prlimit64 and setrlimit"),
            "it can use up the machine's memory, processor and descriptors.",
        ),
        "no_new_privs": Remedy(
            "prctl(PR_SET_NO_NEW_PRIVS) is there from Linux 3.5 on. " + _calls("prctl"),
            "it may gain powers by executing a program; Landlock and seccomp stand on it, but for root.",
        ),
        "capabilities": Remedy(
            "Every Linux lets a process give up its powers. " + _calls("capset, capget and prctl"),
            "where the daemon runs as root, it keeps root's powers.",
        ),
        "undumpable": Remedy(
            "Every Linux has prctl(PR_SET_DUMPABLE). " + _calls("prctl"),
            "other programs of yours can read its memory, and a core dump may hold what it has read.",
        ),
        "parent_death": Remedy(
            "Every Linux has prctl(PR_SET_PDEATHSIG). " + _calls("prctl"), "it may live on when the daemon is killed."
        ),
        "landlock": Remedy(
            _LSM + _calls("landlock_create_ruleset, landlock_add_rule and landlock_restrict_self"),
            "it can read every file that you can, and change those where its tools may write.",
        ),
        "landlock_truncate": Remedy(_OLDER.format("6.2"), "it can empty files outside of the root."),
        "landlock_network": Remedy(_OLDER.format("6.7"), "the filter of system calls alone holds it off TCP."),
        "landlock_devices": Remedy(_OLDER.format("6.10"), "the filter of system calls alone holds it off devices."),
        "landlock_scope": Remedy(
            _OLDER.format("6.12"),
            "the filter of system calls, or a command's namespaces, alone hold it off other processes.",
        ),
        "seccomp": Remedy(
            "It needs a kernel that was built with CONFIG_SECCOMP_FILTER. " + _calls("seccomp"),
            "it can make every system call: sockets, modes, owners and times of files, tracing.",
        ),
    }
)
"""What `allow_degraded` may name, but for the namespaces, which are forbidden in ways of their own."""

_NAMESPACES: Final = frozenset({"namespaces", "sandbox", "private_root", "places"})
"""What is made of user namespaces."""

_VERSIONS: Final = "Parts of two versions are mixed: pip install --force-reinstall strongroom"
_ENDED: Final = "It ended by itself. What it wrote last is shown by: strongroom -v doctor"

_LEADS_BACK: Final = re.compile(
    r":? see `strongroom doctor`(, or add '\w+' to allow_degraded to do without it)?"
    r"|; they are (tried again in -?\d+ s|being tried again just now)"
    r"| Tell the person to run `strongroom doctor`\."
    r"| `strongroom doctor` (tells|says) (more|what to do)\.?"
)
_REFUSAL: Final = re.compile(r"refused to serve without (?P<feature>\w+): ")


def without_hints(told: str) -> str:
    """Return what a worker, or its pool, says, without what only leads here."""
    return _LEADS_BACK.sub("", told)


def refusal_remedy(told: str, category: str, settings: Settings, found: Mapping[str, str], program: str) -> str:
    """Return what to do about workers of `category` that do not serve, lines.

    Args:
        told: why, in the pool's words.
        category: theirs.
        settings: say what is done without already.
        found: as for `namespace_remedy.namespaces`.
        program: as for `namespace_remedy.namespaces`.
    """
    match = _REFUSAL.search(told)
    feature = match["feature"] if match else ""
    lines = [ROWS[category].without]
    if feature in _NAMESPACES:
        lines += namespace_remedy(found, program)
    elif feature in PROTECTION:
        lines += [PROTECTION[feature].had, _without(feature, settings)]
    elif feature == category:
        lines.append(ROWS[category].stands_on)
    else:
        lines.append(_VERSIONS if feature == "version" else _ENDED)
    return "\n".join(filter(None, lines))


def tool_remedy(told: str, category: str, found: Mapping[str, str], program: str) -> str:
    """Return what to do about a tool that failed in a worker that serves; arguments as for `refusal_remedy`."""
    row = ROWS[category]
    more = namespace_remedy(found, program) if "the sandbox for " in told else [row.stands_on]
    return "\n".join(filter(None, (row.without, *more)))


def _without(feature: str, settings: Settings) -> str:
    named = (*settings.config.allow_degraded, feature)
    listed = ", ".join(f'"{each}"' for each in named if each in PROTECTIONS)
    told = PROTECTION[feature].given_up
    return (
        f"Or do without it: allow_degraded = [{listed}] in {settings.config_file}. A worker is confined by less: {told}"
    )


def degraded_remedy(feature: str, category: str, found: Mapping[str, str], program: str) -> tuple[str, str]:
    """Return what a worker's missing protection means, and what to do; arguments as for `refusal_remedy`."""
    if feature in PROTECTION:
        remedy = PROTECTION[feature]
        return f"it is unavailable, and allow_degraded names it: once taken over, {remedy.given_up}", remedy.had
    detail = f"this system forbids them, and the worker serves without: {ROWS[category].degraded}"
    return detail, "\n".join(["Allow them, for a second wall:", *namespace_remedy(found, program)])


def open_door_remedy(degraded: Sequence[str]) -> str:
    """Return what to do about a way out that is open, in a worker that lacks the protections `degraded`."""
    if degraded:
        return f"It is open without {', '.join(degraded)}."
    return "This should not be possible: let no agent run here, and report it."
