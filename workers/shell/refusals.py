"""Signs in the output of a command that it was refused something by its sandbox. Pure.

Rule: the kernel refuses most without a word to anybody, so what the command printed must tell. A sign lets nothing
pass: it makes a person be asked, and the model be told, should it mislead.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from workers.changes.effects import NETWORK

_LOOKED_AT: Final = 2**14
"""Characters of the end of what it printed as errors."""


def _sign(pattern: str, what: str) -> tuple[re.Pattern[str], str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE), what


_SIGNS: Final = (
    _sign(r"read-only file system", "a write outside of the root"),
    _sign(
        r"connect to (?:\w+ )*?(?:scope )?bus|d-?bus|can't operate\b|talk to init daemon",
        "the bus of the system's services",
    ),
    _sign(r"(?:docker|podman|containerd|buildkit)\S* [^\n]{0,300}(?:sock|daemon)", "a container engine"),
    _sign(
        r"\b\w*kill(?:all)?\b[^\n]{0,300}(?:permitted|no such process)|killing pid \d+ failed", "a signal to a process"
    ),
    _sign(
        r"(?:renice|ionice|taskset|chrt|set (?:priority|pid))[^\n]{0,300}(?:permitted|no such process)",
        "another process's settings",
    ),
    _sign(r"ptrace|/proc/\d+/\S+: permission denied", "the inside of another process"),
    _sign(r"\b(?:u?mount|losetup|swapo\w+)\b[^\n]{0,300}(?:denied|superuser|permitted|root|not find)", "a mount"),
    _sign(r"kernel buffer", "the kernel's log"),
    _sign(
        r"no new privileges|effective uid is not 0|setuid root|^sudo: |\bsu: |\bpkexec\b", "the rights of another user"
    ),
    _sign(
        r"network is unreachable|resolve host|name resolution|couldn't connect|connect to \S+ port|connect: "
        r"|rtnetlink answers: operation|socket\b[^\n]{0,300}not permitted",
        NETWORK,
    ),
    _sign(r"cannot lock /etc/|cannot open audit", "a change of users"),
    _sign(r"cannot set date|sysctl: |host name|failed to set time|reboot parameter", "a setting of the machine"),
)
_ANY: Final = re.compile(r"permission denied|not permitted|must be root|are you root|superuser", re.IGNORECASE)
_ANYTHING: Final = "what commands may not do here"


class Otherwise(NamedTuple):
    """What is so of programs whose view is another here than outside."""

    programs: re.Pattern[bytes]
    instead: str
    lacked: str = ""
    """What they are refused without a word of it, in words."""
    if_failed: bool = False
    """They were refused it only where the command failed."""


def _otherwise(programs: str, *more: Any) -> Otherwise:
    where = r"(?:^|[;&|(\n`]|\b(?:do|then|else|exec|sudo|time|xargs)\b)[ \t]{0,99}(?:/usr)?(?:/s?bin/)?"
    return Otherwise(re.compile(f"{where}(?:{programs})(?![\\w.-])".encode()), *more)


_OTHERWISE: Final = (
    _otherwise(
        "lsof|fuser",
        "lsof and fuser find nothing of others here; `ss -tunp`, with -l for who listens and -x for local ones, names "
        "who holds a socket; who holds a file, also one that was deleted, shows on the real system alone",
        "what other processes have open",
    ),
    _otherwise(
        "df|mount|findmnt|lsblk",
        "file systems of homes, /tmp, /var/tmp, /run and /dev, which are hidden or private, are not shown as they are; "
        "the machine's mounts are in /proc/1/mounts",
    ),
    _otherwise(
        "du|ncdu",
        "what is hidden or private counts nothing here: homes, /tmp, /var/tmp, /run, /var/lib/docker and its like, and "
        "deleted files that are held open",
    ),
    _otherwise(
        "systemctl",
        "no bus leads out: `systemctl --root=/ is-enabled UNIT`, `journalctl -u UNIT`, /lib/systemd/system and ps tell",
    ),
    _otherwise("ifconfig|arp", "`ip addr` and `ip neigh` tell it here"),
    _otherwise(
        "s?fdisk|parted|blkid|losetup|swapon|[lvp]vs|smartctl|hdparm|nvme",
        "no device is here; lsblk, /sys/block and /proc/partitions tell of them",
        "a device",
    ),
    _otherwise("logger|systemd-cat|wall|write", "what it sends reaches nobody from here", "a message to others"),
    _otherwise(
        "pkill|killall|skill",
        "it finds no process of the machine here, though there may be some: pgrep tells",
        "a signal to a process",
        True,
    ),
)
"""Programs whose view is another here than outside, and what is."""


_NOBODY: Final = re.compile(r"\b(?:nobody|nogroup|65534)\b")
_NOBODYS: Final = "whatever belongs to another user or group shows as nobody, nogroup or 65534 here, whoever it is"


def lacked(code: int, stdout: str, stderr: str, *, network: bool) -> tuple[str, ...]:
    """Return what a command was refused, in words, the most telling first.

    Args:
        code: its exit code.
        stdout: what it printed.
        stderr: what it printed there.
        network: whether it is known to have tried the network.
    """
    told = stderr[-_LOOKED_AT:]
    found = [what for sign, what in _SIGNS if sign.search(told) or (network and what == NETWORK)]
    if not found and code and not stdout and _ANY.search(told):
        found.append(_ANYTHING)
    return tuple(found)


def unseen(command: bytes, code: int) -> tuple[str, ...]:
    """Return what a command that sees the machine was refused without a word of it, by the programs that it names."""
    rows = [row for row in _OTHERWISE if row.lacked and (code or not row.if_failed)]
    return tuple(row.lacked for row in rows if row.programs.search(command))


def notes(command: bytes, missed: Sequence[str], printed: str, *, network: bool) -> list[str]:
    """Return what is to be said of a command that sees the machine; of a network that it tried it is said already."""
    told = [each for each in missed if each != NETWORK or not network]
    said = [f"refused: {', '.join(told)}"] if told else []
    said += [_NOBODYS] if _NOBODY.search(printed) else []
    return [*said, *(row.instead for row in _OTHERWISE if row.programs.search(command))]
