"""Remedies for missing user namespaces: what this system forbids, and how to allow it.

Rule: pure but for `system_facts`, which reads a few files; nothing is changed, and each advice can be typed as it is.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_APPARMOR: Final = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_CLONE: Final = "/proc/sys/kernel/unprivileged_userns_clone"
_MOST: Final = "/proc/sys/user/max_user_namespaces"
_CONTAINERS: Final = ("/.dockerenv", "/run/.containerenv")

PROFILE: Final = """\
abi <abi/4.0>,
include <tunables/global>
profile strongroom {program} flags=(unconfined) {{
  userns,
}}
"""

FLAGS: Final = (
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined"
)

COPY: Final = " " * 14
"""Begins a line of an advice that is to be copied as it is."""


def system_facts() -> dict[str, str]:
    """Return what the kernel and the container say, by file; a file that is not there is left out."""
    found = {}
    for path in (_APPARMOR, _CLONE, _MOST, *_CONTAINERS):
        try:
            found[path] = Path(path).read_text().strip()
        except OSError:
            continue
    return found


def namespace_remedy(found: Mapping[str, str], program: str) -> Iterator[str]:
    """Yield how to allow user namespaces, and mounts in them; `program` is the interpreter that workers run."""
    said = False
    if found.get(_CLONE) == "0":
        said = True
        yield "Unprivileged user namespaces are switched off. As root: sysctl -w kernel.unprivileged_userns_clone=1"
    if found.get(_MOST) == "0":
        said = True
        yield "No user namespace may be made. As root: sysctl -w user.max_user_namespaces=15000"
    if found.get(_APPARMOR) == "1":
        said = True
        yield "AppArmor restricts user namespaces. As root, write this to /etc/apparmor.d/strongroom and load it with"
        yield "apparmor_parser -r /etc/apparmor.d/strongroom (or, for all programs, sysctl -w"
        yield "kernel.apparmor_restrict_unprivileged_userns=0):"
        yield from (f"{COPY}{line}" for line in PROFILE.format(program=program).splitlines())
    if any(path in found for path in _CONTAINERS):
        said = True
        yield f"This is a container. Start it with: {FLAGS}"
    if not said:
        yield "No known switch of this system forbids it. Try: unshare --user --map-root-user --mount --pid --fork true"
