"""Remedies of `strongroom doctor` for workers that refuse to serve, or serve with a protection less.

Rule: data, and pure but for `system_facts`, which reads a few files. A row says how to get the protection, and what a
worker can do without it; of namespaces, what this system forbids and how to allow it, so that each advice can be typed
as it is. A worker's own words are shown without hints that only lead back to doctor.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from supervisor.categories.rows import ROWS
from supervisor.config.settings import Settings
from workers.catalog import protections


class Remedy(NamedTuple):
    """How a protection is had, and what a worker that was taken over can do without it."""

    had: str
    given_up: str = ""


def _calls(names: str) -> str:
    return f"In a container it may be its seccomp profile that forbids it: allow {names} there."


_OLDER: Final = "This part of Landlock needs Linux {} or newer."
_LSM: Final = (
    "Landlock needs Linux 5.13 or newer, built with it (CONFIG_SECURITY_LANDLOCK) and booted "
    "with it (EOPNOTSUPP: it was not). Look at /sys/kernel/security/lsm, and add landlock to the list in the boot "
    "option, as in lsm=landlock,lockdown,yama,integrity,apparmor,bpf. "
)

PROTECTION: Final[Mapping[str, Remedy]] = MappingProxyType(
    {
        "descriptors": Remedy(
            "close_range(2) needs Linux 5.11 or newer. " + _calls("close_range"),
            "it keeps whatever descriptors it was started with.",
        ),
        "rlimits": Remedy(
            "Only a filter of system calls refuses to lower limits. " + _calls("prlimit64 and setrlimit"),
            "it can use up the machine's memory, processor and descriptors.",
        ),
        "no_new_privs": Remedy(
            "prctl(PR_SET_NO_NEW_PRIVS) needs Linux 3.5 or newer. " + _calls("prctl"),
            "it may gain privileges by executing a program; except for root, Landlock and seccomp need it too.",
        ),
        "capabilities": Remedy(
            "Every Linux lets a process drop its capabilities. " + _calls("capset, capget and prctl"),
            "where the daemon runs as root, it keeps root's capabilities.",
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
        "landlock_network": Remedy(_OLDER.format("6.7"), "only the filter of system calls keeps it from TCP."),
        "landlock_devices": Remedy(_OLDER.format("6.10"), "only the filter of system calls keeps it from devices."),
        "landlock_scope": Remedy(
            _OLDER.format("6.12"),
            "only the filter of system calls, or a command's namespaces, keep it from other processes.",
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

_VERSIONS: Final = "Files of two versions are mixed: pip install --force-reinstall . where its source is"
_ENDED: Final = "It ended by itself. To see what it wrote last: strongroom -v doctor"

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


def refusal_remedy(told: str, category: str, settings: Settings, allow: Sequence[str]) -> str:
    """Return what to do about workers of `category` that do not serve, lines.

    Args:
        told: why, in the pool's words.
        category: theirs.
        settings: say what is done without already.
        allow: how to allow namespaces, as `namespace_remedy` says.
    """
    match = _REFUSAL.search(told)
    feature = match["feature"] if match else ""
    lines = [ROWS[category].without]
    if feature in _NAMESPACES:
        lines += allow
    elif feature in PROTECTION:
        lines += [PROTECTION[feature].had, _without(feature, settings)]
    elif feature == category:
        lines.append(ROWS[category].stands_on)
    else:
        lines.append(_VERSIONS if feature == "version" else _ENDED)
    return "\n".join(filter(None, lines))


def tool_remedy(told: str, category: str, allow: Sequence[str]) -> str:
    """Return what to do about a tool that failed in a worker that serves; arguments as for `refusal_remedy`."""
    row = ROWS[category]
    more = allow if "the sandbox for " in told else [row.stands_on]
    return "\n".join(filter(None, (row.without, *more)))


def _without(feature: str, settings: Settings) -> str:
    named = (*settings.config.allow_degraded, feature)
    listed = ", ".join(f'"{each}"' for each in named if each in protections())
    told = PROTECTION[feature].given_up
    without = f"Or do without it: allow_degraded = [{listed}] in {settings.config_file}."
    return f"{without} A worker is then confined less: {told}"


def degraded_remedy(feature: str, category: str, allow: Sequence[str]) -> tuple[str, str]:
    """Return what a worker's missing protection means, and what to do; arguments as for `refusal_remedy`."""
    if feature in PROTECTION:
        remedy = PROTECTION[feature]
        return (
            f"it is unavailable, and allow_degraded names it: if the worker is taken over, {remedy.given_up}",
            remedy.had,
        )
    detail = f"this system forbids them, and the worker runs without them: {ROWS[category].degraded}"
    return detail, "\n".join(["To allow them, for a second layer of protection:", *allow])


def open_door_remedy(degraded: Sequence[str]) -> str:
    """Return what to do about a way out that is open, in a worker that lacks the protections `degraded`."""
    if degraded:
        return f"It is open without {', '.join(degraded)}."
    return "This should not be possible: let no agent run here, and report it."


# --- namespaces -------------------------------------------------------------------------------------------------------

_APPARMOR: Final = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_SWITCHES: Final = (
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "Unprivileged user namespaces are switched off. As root: sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "User namespaces are limited to none. As root: sysctl -w user.max_user_namespaces=15000",
    ),
)
"""What forbids them where it holds 0, and how to switch it."""
_CONTAINERS: Final = ("/.dockerenv", "/run/.containerenv")
_STATUS: Final = "/proc/self/status"
_FILTERED: Final = re.compile(r"^Seccomp:\s+2$", re.MULTILINE)
"""In the status of a process that a filter of system calls holds."""

COPY: Final = " " * 14
"""Begins a line of an advice that is to be copied as it is."""

_PROFILE: Final = f"""\
AppArmor restricts user namespaces. As root, write this to /etc/apparmor.d/strongroom and load it with
apparmor_parser -r /etc/apparmor.d/strongroom (or, for all programs, sysctl -w
kernel.apparmor_restrict_unprivileged_userns=0):
{COPY}abi <abi/4.0>,
{COPY}include <tunables/global>
{COPY}profile strongroom {{program}} flags=(unconfined) {{{{
{COPY}  userns,
{COPY}}}}}"""

_FLAGS: Final = (
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined"
)


_POD: Final = "in the securityContext of a pod, seccompProfile with type Unconfined, and procMount Unmasked"


def system_facts() -> dict[str, str]:
    """Return what the kernel and the container say, by file; a file that is not there is left out."""
    found = {}
    for path in (_APPARMOR, *dict(_SWITCHES), *_CONTAINERS, _STATUS):
        with suppress(OSError):
            found[path] = Path(path).read_text().strip()
    return found


def namespace_remedy(found: Mapping[str, str], program: str) -> list[str]:
    """Return how to allow user namespaces, and mounts in them; `program` is the interpreter that workers run."""
    advice = [how for path, how in _SWITCHES if found.get(path) == "0"]
    if found.get(_APPARMOR) == "1":
        advice += _PROFILE.format(program=program).splitlines()
    if any(path in found for path in _CONTAINERS):
        advice.append(f"This is a container. Start it with: {_FLAGS}")
    elif _FILTERED.search(found.get(_STATUS, "")):
        advice.append(f"A filter of system calls is on, as containers have one: {_POD}. Of Docker and Podman: {_FLAGS}")
    return advice or [
        "No known switch of this system forbids it. Try: unshare --user --map-root-user --mount --pid --fork true"
    ]
