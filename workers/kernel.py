"""The system calls that Python does not offer, by ctypes, and the small files of /proc.

Rule: every call is checked, and a failure is an OSError that names it. Numbers are those of x86_64 and aarch64;
on any other machine importing this module's callers fails before anything is confined (fail closed).
Sources: the kernel's include/uapi headers and syscall tables (asm/unistd_64.h, asm-generic/unistd.h).
"""

import ctypes
import os
from collections.abc import Callable
from typing import Final

MACHINE: Final = os.uname().machine
"""As platform.machine() names it, without the import, which costs a worker 4 ms."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

_as_utf8: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyUnicode_AsUTF8AndSize", ctypes.pythonapi)
)
_memory: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)
_PyBUF_READ: Final = 0x100

OPENAT2: Final = 437
LANDLOCK_CREATE_RULESET: Final = 444
LANDLOCK_ADD_RULE: Final = 445
LANDLOCK_RESTRICT_SELF: Final = 446
SECCOMP: Final = {"x86_64": 317, "aarch64": 277}.get(MACHINE, -1)
RENAMEAT2: Final = {"x86_64": 316, "aarch64": 276}.get(MACHINE, -1)
CLONE: Final = {"x86_64": 56, "aarch64": 220}.get(MACHINE, -1)
STATX: Final = {"x86_64": 332, "aarch64": 291}.get(MACHINE, -1)
SYNCFS: Final = {"x86_64": 306, "aarch64": 267}.get(MACHINE, -1)

NOREPLACE: Final = 1
EXCHANGE: Final = 2
_CHUNK: Final = 4096
_PAGE: Final = 4096
_PROT_READ: Final = 1
_MAP_PRIVATE: Final = 2
_FAILED: Final = ctypes.c_void_p(-1).value
"""MAP_FAILED."""
_CLONE_PARENT: Final = 0x8000
_SIGCHLD: Final = 17


def syscall(name: str, number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """Enter the kernel at `number`; integers pass as longs, buffers as pointers.

    Raises:
        OSError: with the call's errno and `name` as its file name.
    """
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(name, _libc.syscall(ctypes.c_long(number), *passed))


def prctl(name: str, option: int, *arguments: int) -> int:
    """Make one call of `prctl`; missing arguments are zero, as newer options demand.

    Raises:
        OSError: with the call's errno and `name` as its file name.
    """
    return _checked(name, _libc.prctl(option, *(*arguments, 0, 0, 0, 0)[:4]))


def sibling_fork() -> Callable[[], int]:
    """Return a fork that is os.fork() but for the parent, which is that of this process: CLONE_PARENT of clone(2).

    Only where this process has one thread, and glibc's own preparations for a fork have nothing to do. What it calls is
    looked up beforehand: the first steps of a new process are dear, for it copies each page that it touches. It raises
    OSError where the kernel refuses.
    """
    python = ctypes.PyDLL(None, use_errno=True)  # the lock of the interpreter is kept, as os.fork() keeps it
    clone = python.syscall
    clone.restype = ctypes.c_long
    arguments = tuple(map(ctypes.c_long, (CLONE, _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0)))
    before, parent, child = python.PyOS_BeforeFork, python.PyOS_AfterFork_Parent, python.PyOS_AfterFork_Child

    def fork() -> int:
        before()
        pid: int = clone(*arguments)
        (parent if pid else child)()
        return _checked("clone", pid)

    return fork


def _checked(name: str, result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def rename(old_parent: int, old: str, new_parent: int, new: str, flags: int) -> None:
    """Rename by renameat2(2): with `NOREPLACE`, or `EXCHANGE`; nothing is overwritten."""
    syscall("renameat2", RENAMEAT2, old_parent, os.fsencode(old), new_parent, os.fsencode(new), flags)


def syncfs(directory: int) -> None:
    """Make everything on the file system of a directory durable."""
    syscall("syncfs", SYNCFS, directory)


def hold(file: int) -> int:
    """Map an open file, which nobody reads there: what it takes on the disk is freed no sooner than by `let_go`."""
    address: int | None = _libc.mmap(None, _PAGE, _PROT_READ, _MAP_PRIVATE, file, 0)
    return _checked("mmap", -1 if address in {None, _FAILED} else address or 0)


def let_go(address: int) -> None:
    """Let go of a file that is held."""
    _checked("munmap", _libc.munmap(address, _PAGE))


def keep_heap() -> None:
    """Let malloc keep what it has freed, so that large frames do not fault their pages in anew.

    M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of mallopt(3); a 1 MiB reply costs a third. Other libraries than
    glibc may not have it: then nothing changes.
    """
    mallopt = getattr(_libc, "mallopt", None)
    if mallopt is not None:
        mallopt(-3, 32 * 2**20)
        mallopt(-1, 64 * 2**20)


def utf8_of(text: str) -> memoryview:
    """Return the UTF-8 of a text where it stands in memory, for as long as the text is there.

    That of ASCII is the text itself; of other text Python keeps it beside it. Source: PyUnicode_AsUTF8AndSize and
    PyMemoryView_FromMemory of Python's C API.

    Raises:
        UnicodeEncodeError: it has lone surrogates.
    """
    size = ctypes.c_ssize_t()
    view: memoryview = _memory(_as_utf8(text, ctypes.byref(size)), size, _PyBUF_READ)
    return view


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
