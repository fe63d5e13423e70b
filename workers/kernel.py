"""The system calls that Python does not offer, by ctypes, and the small files of /proc.

Rule: every call is checked, and a failure is an OSError that names it. Numbers are those of x86_64 and aarch64;
on any other machine importing this module's callers fails before anything is confined (fail closed).
Sources: the kernel's include/uapi headers and syscall tables (asm/unistd_64.h, asm-generic/unistd.h).
"""

import ctypes
import os
from typing import Final

MACHINE: Final = os.uname().machine
"""As platform.machine() names it, without the import, which costs a worker 4 ms."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

OPENAT2: Final = 437
LANDLOCK_CREATE_RULESET: Final = 444
LANDLOCK_ADD_RULE: Final = 445
LANDLOCK_RESTRICT_SELF: Final = 446
SECCOMP: Final = {"x86_64": 317, "aarch64": 277}.get(MACHINE, -1)
_CHUNK: Final = 4096


def syscall(name: str, number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """Enter the kernel at `number`; integers pass as longs, buffers as pointers.

    Raises:
        OSError: with the call's errno and `name` as its file name.
    """
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *passed)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def prctl(name: str, option: int, *arguments: int) -> int:
    """Make one call of `prctl`; missing arguments are zero, as newer options demand.

    Raises:
        OSError: with the call's errno and `name` as its file name.
    """
    padded = (*arguments, 0, 0, 0, 0)[:4]
    result: int = _libc.prctl(ctypes.c_int(option), *[ctypes.c_ulong(each) for each in padded])
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def keep_heap() -> None:
    """Let malloc keep what it has freed, so that large frames do not fault their pages in anew.

    M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of mallopt(3); a 1 MiB reply costs a third. Other libraries than
    glibc may not have it: then nothing changes.
    """
    mallopt = getattr(_libc, "mallopt", None)
    if mallopt is not None:
        mallopt(-3, 32 * 2**20)
        mallopt(-1, 64 * 2**20)


def read_proc(path: str) -> bytes:
    """Return what a small file of /proc says; nothing where its process has gone, or does not let itself be seen."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, _CHUNK)
    except OSError:
        return b""
    finally:
        os.close(file)
