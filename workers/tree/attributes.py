"""Attributes of a file besides its content and mode: what a file in its place is given, and what it cannot have.

Rule: extended attributes `user.*` and access lists are carried over, the group where the system lets it. A list in
which somebody is named whom this process's user namespace does not know is as if it were not there: it could not be set
again, and stays where it is.
"""

import os
import stat
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from workers.changes.digest import sha256

SHORT: Final = 64
"""Bytes from which on an attribute's value stands as its digest, which is longer."""

INTERNAL: Final = "user.overlay."
"""How the names of an overlay's own attributes begin."""

ACCESS: Final = "system.posix_acl_access"
_LISTS: Final = (ACCESS, "system.posix_acl_default")
_CAPABILITY: Final = "security.capability"
_SET_ID: Final = stat.S_ISUID | stat.S_ISGID

_HEADER: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<HHI")
_OWNER, _USER, _GROUP_OF_FILE, _GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32
"""linux/posix_acl_xattr.h: version 2, then tag, permissions and id of each entry."""
_NOBODY: Final = 0xFFFFFFFF


def attributes_of(file: int) -> dict[str, bytes]:
    """Return the extended attributes of an open file that a commit carries over, unshortened."""
    return read_attributes(file)[0]


def read_attributes(file: int) -> tuple[dict[str, bytes], list[str]]:
    """Return the same, and which of the others it has that make a difference: in words."""
    try:
        names = os.listxattr(file)
        if not names:
            return {}, []
        found = {name: os.getxattr(file, name) for name in sorted(filter(is_carried, names))}
    except OSError:
        return {}, []
    unknown = [name for name, value in found.items() if name in _LISTS and _NOBODY in _named(value)]
    others = ["its access list"] * bool(unknown) + ["its capabilities"] * (_CAPABILITY in names)
    return {name: value for name, value in found.items() if name not in unknown}, others


def is_carried(attribute: str) -> bool:
    """Say whether a commit carries over an extended attribute of that name."""
    return attribute in _LISTS or (attribute.startswith("user.") and not attribute.startswith(INTERNAL))


def set_attributes(file: int, attributes: Mapping[str, bytes], mode: int) -> None:
    """Give an open file extended attributes, and then its mode, because a list of access changes that."""
    for name, value in attributes.items():
        os.setxattr(file, name, value)
    os.fchmod(file, mode)


def shortened(attributes: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return attributes as a state has them."""
    return {
        name: value if len(value) < SHORT else b"sha256:" + sha256(value).hexdigest().encode()
        for name, value in attributes.items()
    }


def become(file: int, attributes: Mapping[str, bytes], mode: int, group: int) -> None:
    """Let an open file that was just made have these attributes and no others, the permission bits, and the group.

    What its directory gave it goes. The group stays another one where the system does not let it be given. No mode is
    changed by its own call, which a worker may not make, but by an access list.

    Raises:
        OSError: an attribute cannot be given.
    """
    status, inherited = os.fstat(file), attributes_of(file)
    if status.st_gid != group:
        with suppress(PermissionError):
            os.chown(file, -1, group)
    for name, value in attributes.items():
        if inherited.get(name) != value:
            os.setxattr(file, name, value)
    if ACCESS not in attributes and (ACCESS in inherited or (status.st_mode ^ mode) & 0o777):
        os.setxattr(file, ACCESS, plain_list(mode))


def plain_list(mode: int) -> bytes:
    """Return the access list that says no more than permission bits; the kernel makes these of it."""
    rights = (_OWNER, mode >> 6), (_GROUP_OF_FILE, mode >> 3), (_OTHER, mode)
    return _HEADER.pack(2) + b"".join(_ENTRY.pack(tag, bits & 0o7, _NOBODY) for tag, bits in rights)


def unkept(status: os.stat_result, parent: int, others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what an undo cannot give back to a file or directory, and a change may not keep, in words.

    Args:
        status: its own.
        parent: of the directory that it is in.
        others: of its attributes, as `read_attributes` says.
    """
    is_file = stat.S_ISREG(status.st_mode)
    lost = ["its owner"] if status.st_uid != os.geteuid() else []
    if status.st_gid != os.getegid() and not (is_file and inherits(parent, status.st_gid)):
        lost.append("its group")
    if is_file and status.st_mode & _SET_ID:
        lost.append("its set-ID bits")
    return (*lost, *others)


def inherits(parent: int, group: int) -> bool:
    """Say whether a file that is made in an open directory gets that group from it."""
    above = os.fstat(parent)
    return bool(above.st_mode & stat.S_ISGID) and above.st_gid == group


def make_inheriting(parent: int, directory: int, name: str) -> int:
    """Make a file without a name in `parent`, which gives it its group, and name it in `directory`; return it, open.

    Raises:
        OSError: it cannot be done; nothing is left.
    """
    file = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=parent)
    try:
        for each in attributes_of(file):
            os.removexattr(file, each)
        os.link(f"/proc/self/fd/{file}", name, dst_dir_fd=directory, follow_symlinks=True)
    except BaseException:
        os.close(file)
        raise
    return file


def names_others(attributes: Mapping[str, bytes]) -> bool:
    """Say whether an access list names somebody, whom a worker in a user namespace of its own cannot name."""
    return any(_named(attributes[name]) for name in _LISTS if name in attributes)


def without_lists(attributes: Mapping[str, bytes], mode: int) -> tuple[dict[str, bytes], int]:
    """Return attributes without access lists, and the mode that gives nobody more rights without them."""
    rights = {tag: bits for tag, bits, _number in _ENTRY.iter_unpack(attributes.get(ACCESS, b"")[_HEADER.size :])}
    group = rights.get(_GROUP_OF_FILE, 0o7) & rights.get(_MASK, 0o7)
    rest = {name: value for name, value in attributes.items() if name not in _LISTS}
    return rest, mode & (~0o070 | group << 3)


def _named(value: bytes) -> list[int]:
    """Return the numbers of those whom an access list names; one that makes no sense names nobody known."""
    try:
        entries = list(_ENTRY.iter_unpack(value[_HEADER.size :]))
    except struct.error:
        return [_NOBODY]
    return [number for tag, _bits, number in entries if tag in (_USER, _GROUP)]
