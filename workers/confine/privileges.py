"""Death with the supervisor, inherited descriptors and capabilities of this process.

Rule: each function does one thing that cannot be undone, then reads it back where the kernel lets it, and
raises OSError if it does not hold. Sources: prctl(2), capabilities(7), close_range(2), linux/capability.h.
"""

import ctypes
import errno
import os
import struct
from typing import Final

from workers import kernel
from workers.confine.syscalls import NUMBERS

ORPHAN: Final = 75
"""Exit code of a worker whose supervisor was gone before it began (EX_TEMPFAIL of sysexits.h)."""

_NUMBERS: Final = NUMBERS.get(kernel.MACHINE, {})
"""On an unknown machine every number is -1: ENOSYS."""

SIGKILL: Final = 9
PR_SET_PDEATHSIG: Final = 1
_PR_GET_PDEATHSIG: Final = 2
PR_GET_DUMPABLE: Final = 3
PR_SET_DUMPABLE: Final = 4
_PR_CAPBSET_READ: Final = 23
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
PR_GET_NO_NEW_PRIVS: Final = 39
_CAPABILITY_HEADER: Final = struct.pack("=Ii", 0x20080522, 0)
"""Of version 3, for this process."""
_CapabilitySets: Final = ctypes.c_char * 24
"""Three sets in two halves each; made here, for it takes 0.1 ms to make a type in a process that was just forked."""
_CAPABILITIES: Final = 64
"""The most that the capability sets can hold; the kernel says EINVAL after its last one."""

_CLOSE_RANGE_CLOEXEC: Final = 4
_LAST_DESCRIPTOR: Final = 2**31 - 1


def die_with(supervisor_pid: int) -> None:
    """Let the kernel kill this process when the supervisor's main thread ends; exit now if it already has.

    Call it after anything that changes the user, which clears the setting. A parent in another pid namespace
    shows as 0: it cannot be compared, so it counts as gone.

    Raises:
        OSError: the kernel refuses.
    """
    kernel.prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != supervisor_pid or supervisor_pid <= 0:
        os._exit(ORPHAN)


def check_parent_death() -> None:
    """Read back what `die_with` set: a change of credentials since then would have cleared it.

    Raises:
        OSError: EPERM, the process would outlive its supervisor.
    """
    number = ctypes.c_int(0)
    kernel.prctl("PR_GET_PDEATHSIG", _PR_GET_PDEATHSIG, ctypes.addressof(number))
    _require(number.value == SIGKILL, "PR_GET_PDEATHSIG")


def keep_only(keep: tuple[int, ...]) -> None:
    """Close every descriptor but those of `keep`, and let none of them pass to another program.

    Raises:
        OSError: EBADF when one of `keep` is not open.
    """
    kept = sorted(set(keep))
    for descriptor in kept:
        os.fstat(descriptor)
    number = _NUMBERS.get("close_range", -1)
    kernel.syscall("close_range", number, 0, _LAST_DESCRIPTOR, _CLOSE_RANGE_CLOEXEC)
    first = 0
    for descriptor in (*kept, _LAST_DESCRIPTOR + 1):
        if descriptor > first:
            kernel.syscall("close_range", number, first, descriptor - 1, 0)
        first = descriptor + 1


def no_new_privs() -> None:
    """Give up gaining anything by executing a program; seccomp and Landlock need it.

    Raises:
        OSError: the kernel refuses.
    """
    kernel.prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)
    _require(kernel.prctl("PR_GET_NO_NEW_PRIVS", PR_GET_NO_NEW_PRIVS) == 1, "PR_GET_NO_NEW_PRIVS")


def undumpable() -> None:
    """Leave no core dump and admit no tracer of the same user.

    RLIMIT_CORE of 0 alone does not stop a dump into a pipe (core(5)), and with it what the user's files hold.

    Raises:
        OSError: the kernel refuses.
    """
    kernel.prctl("PR_SET_DUMPABLE", PR_SET_DUMPABLE, 0)
    _require(kernel.prctl("PR_GET_DUMPABLE", PR_GET_DUMPABLE) == 0, "PR_GET_DUMPABLE")


def drop_capabilities() -> None:
    """Empty the bounding, permitted, effective and inheritable sets, with the last the ambient one. Matters as root.

    Raises:
        OSError: a set could not be emptied.
    """
    empty_bounding_set()
    keep_capabilities(())


def empty_bounding_set() -> None:
    """Give up what executing a program can add; what this process forks has given it up too.

    Without CAP_SETPCAP the set stays, which gives nothing: `no_new_privs` stands before that. To look first is worth
    it: what there is no more is not dropped again, which takes three times as long.

    Raises:
        OSError: it could not be emptied.
    """
    for capability in range(_CAPABILITIES):
        try:
            if kernel.prctl("PR_CAPBSET_READ", _PR_CAPBSET_READ, capability):
                kernel.prctl("PR_CAPBSET_DROP", _PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EPERM):
                raise
            break


def keep_capabilities(kept: tuple[int, ...]) -> None:
    """Empty every set but for the capabilities `kept`, which stay permitted and effective, and the bounding one.

    Raises:
        OSError: a set could not be emptied, or one of `kept` is not there to be kept.
    """
    low, high = (sum(1 << each % 32 for each in kept if each // 32 == half) for half in (0, 1))
    wanted = struct.pack("=6I", low, low, 0, high, high, 0)
    kernel.syscall("capset", _NUMBERS.get("capset", -1), _CAPABILITY_HEADER, wanted)
    _require(capabilities() == wanted, "capget")


def nothing_to_regain() -> None:
    """Read back that the bounding set is empty: then executing as user 0 of a user namespace gives no powers either.

    Raises:
        OSError: EPERM, there is something in it, or /proc does not say.
    """
    _, found, rest = kernel.read_proc("/proc/self/status").partition(b"CapBnd:")
    _require(bool(found) and int(rest.split(maxsplit=1)[0], 16) == 0, "CapBnd")


def capabilities() -> bytes:
    """Return the effective, permitted and inheritable sets of this process as capget(2) packs them.

    Raises:
        OSError: the kernel refuses.
    """
    sets = _CapabilitySets()
    kernel.syscall("capget", _NUMBERS.get("capget", -1), _CAPABILITY_HEADER, sets)
    return sets.raw


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise OSError(errno.EPERM, "it was set but does not hold", what)
