"""Landlock: which files this process may still reach.

Rule: everything that the running kernel knows how to forbid is forbidden (files, TCP, signals and abstract
Unix sockets to others), then rules give rights beneath the root, and to the few files that the category
names. A rule is attached to an open descriptor: no path is looked up. What Landlock cannot see (changes of
mode, owner, times and attributes; stat; links' text) is seccomp's part. Source: linux/landlock.h and
https://docs.kernel.org/userspace-api/landlock.html
"""

import errno
import os
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from workers import kernel

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
REMOVE_DIR: Final = 1 << 4
REMOVE_FILE: Final = 1 << 5
MAKE_CHAR: Final = 1 << 6
MAKE_DIR: Final = 1 << 7
MAKE_REG: Final = 1 << 8
MAKE_SOCK: Final = 1 << 9
MAKE_FIFO: Final = 1 << 10
MAKE_BLOCK: Final = 1 << 11
MAKE_SYM: Final = 1 << 12
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15

OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that a rule about a file, and no directory, may give."""

PARTS: Final = (("landlock_truncate", 3), ("landlock_network", 4), ("landlock_devices", 5), ("landlock_scope", 6))
"""What came after the first ABI, as features of their own, with the ABI that brought each: truncating files
(Linux 6.2), TCP (6.7), device ioctls (6.10), signals and abstract sockets (6.12). REFER (ABI 2) is none:
before it, what it would grant is refused."""

_CREATE_RULESET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1
_RULE_NET_PORT: Final = 2
_CONNECT_TCP: Final = 0b10
_ALL_TCP: Final = 0b11
_ALL_SCOPES: Final = 0b11
_FILES_BY_ABI: Final = ((5, 16), (3, 15), (2, 14), (1, 13))
"""From this ABI on, so many rights to files exist."""


def abi() -> int:
    """Return the kernel's Landlock ABI, at least 1.

    Raises:
        OSError: ENOSYS or EOPNOTSUPP, the kernel has no Landlock or booted without it.
    """
    version = kernel.syscall("landlock_create_ruleset", kernel.LANDLOCK_CREATE_RULESET, 0, 0, _CREATE_RULESET_VERSION)
    if version < 1:
        raise OSError(errno.ENOSYS, "no ABI", "landlock_create_ruleset")
    return version


def handled(version: int) -> tuple[int, int, int]:
    """Return all rights that ABI `version` can forbid: to files, to TCP, and scopes."""
    files = next((1 << count) - 1 for since, count in _FILES_BY_ABI if version >= since)
    return files, _ALL_TCP if version >= 4 else 0, _ALL_SCOPES if version >= 6 else 0  # noqa: PLR2004 - see PARTS


class Beneath(NamedTuple):
    """Rights to what lies beneath an open directory, or to an open file itself."""

    descriptor: int
    access: int


def restrict(rules: Iterable[Beneath], ports: Iterable[int] | None = ()) -> int:
    """Forbid everything but what `rules` grant, and to connect to one of `ports`, for good; return the ABI.

    Without `ports`, TCP is not its matter: the network namespace must have nothing to reach.

    Raises:
        OSError: Landlock is not there, `no_new_privs` is not set, or a rule's descriptor is none.
    """
    version = abi()
    files, network, scopes = handled(version)
    network = 0 if ports is None else network
    attributes = struct.pack("=QQQ", files, network, scopes)
    ruleset = kernel.syscall("landlock_create_ruleset", kernel.LANDLOCK_CREATE_RULESET, attributes, _size(version), 0)
    try:
        for descriptor, access in rules:
            if access & files:
                rule = struct.pack("=Qi", access & files, descriptor)
                kernel.syscall("landlock_add_rule", kernel.LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        for port in ports or () if network else ():
            rule = struct.pack("=QQ", _CONNECT_TCP, port)
            kernel.syscall("landlock_add_rule", kernel.LANDLOCK_ADD_RULE, ruleset, _RULE_NET_PORT, rule, 0)
        kernel.syscall("landlock_restrict_self", kernel.LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return version


def need(version: int) -> None:
    """Require an ABI.

    Raises:
        OSError: EOPNOTSUPP, the kernel's is older than `version`, or what `abi` raises.
    """
    present = abi()
    if present < version:
        raise OSError(errno.EOPNOTSUPP, f"ABI {present}, and {version} is needed", "landlock")


def _size(version: int) -> int:
    """Return how many bytes of struct landlock_ruleset_attr this ABI knows."""
    if version >= 6:  # noqa: PLR2004 - see PARTS
        return 24
    return 16 if version >= 4 else 8  # noqa: PLR2004 - see PARTS
