"""Which calls of a command are told to its worker, because they show what it tries outside: data only.

Rule: telling is no lock. A row is worth what it costs, two switches between processes for each call: so the calls are
those that change something by name, and only where the name is absolute or relative to the current directory. A filter
sees no memory, hence not which of these names lead outside. What is done by the thousand is left out: reading, setting
times, and making temporary files.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from workers.confine.denylist import Has, Is, IsNot, Notify

_CWD: Final = 0xFFFFFF9C
"""The low half of AT_FDCWD."""
_WRITES: Final = 0o1 | 0o2 | 0o100 | 0o1000
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC."""

_OF_TEMPORARY_FILES: Final = (0o400, 0o444, 0o600)
"""Modes of files that are made by the hundred and moved to their place later, which is told."""


class Name(NamedTuple):
    """Where among a call's arguments a path stands, and the descriptor that it is relative to, if not to the cwd."""

    path: int
    directory: int | None = None


CHANGES: Final[Mapping[str, tuple[Name, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("open", "creat", "mkdir", "rmdir", "unlink", "mknod"), (Name(0),)),
        **dict.fromkeys(("truncate", "chmod", "chown", "lchown"), (Name(0),)),
        "rename": (Name(0), Name(1)),
        "symlink": (Name(1),),
        **dict.fromkeys(("openat", "mkdirat", "unlinkat", "mknodat"), (Name(1, 0),)),
        **dict.fromkeys(("fchmodat", "fchmodat2", "fchownat"), (Name(1, 0),)),
        **dict.fromkeys(("renameat", "renameat2"), (Name(1, 0), Name(3, 2))),
        "symlinkat": (Name(2, 1),),
    }
)
"""Each call that changes something by name, and where its names stand."""

MAKE_DIRECTORIES: Final = frozenset({"mkdir", "mkdirat"})
"""These are also made of what is there already, by programs that make a whole way (`mkdir -p`)."""

MOVES: Final = ("chdir", "fchdir")
"""They say where relative names begin, which is hardly ever outside."""

_FLAGS: Final[Mapping[str, int]] = MappingProxyType({"open": 1, "openat": 2})


def _row(call: str, names: tuple[Name, ...]) -> Notify:
    directory = names[0].directory
    relative = () if directory is None else (Is(directory, (_CWD,)),)
    flags = _FLAGS.get(call)
    opens = () if flags is None else (Has(flags, _WRITES), IsNot(flags + 1, _OF_TEMPORARY_FILES))
    return Notify(call, (*relative, *opens))


PATHS: Final = (*(_row(call, names) for call, names in CHANGES.items()), *(Notify(call) for call in MOVES))

SOCKETS: Final[Mapping[int, str]] = MappingProxyType(
    {
        2: "an IPv4 socket",
        10: "an IPv6 socket",
        17: "a packet socket",
        31: "a Bluetooth socket",
        40: "a virtual machine's socket",
    }
)
"""Address families (AF_* of address_families(7)), for people."""


def sockets(families: tuple[int, ...]) -> Notify:
    """Return the row that tells of every socket but those of `families`, instead of the one that denies them."""
    return Notify("socket", (IsNot(0, families),))
