"""Every write of a process to its files, seen by ptrace(2) just before the kernel makes it. x86_64 only."""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

CALLS: Final = {1: "write", 18: "pwrite64", 74: "fsync", 75: "fdatasync", 77: "ftruncate", 87: "unlink"}

_TRACEME: Final = 0
_GETREGS: Final = 12
_SYSCALL: Final = 24
_R10, _RDX, _RSI, _RDI, _ORIG_RAX, _REGISTERS = 7, 12, 13, 14, 15, 27
"""Places in struct user_regs_struct (sys/user.h)."""


class Write(NamedTuple):
    """One call. `path` is the file's, the pipe's or the directory's; `at` an offset, or the size of a truncation."""

    call: str
    path: str
    at: int = 0
    data: bytes = b""


class Traced:
    """A function in a process of its own, run from write to write; its descriptor 1 is a pipe."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._said, theirs = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            self._be_traced(function, theirs)
        os.close(theirs)

    def _be_traced(self, function: Callable[[], None], output: int) -> None:
        """Do it in the child, every system call of which the parent sees."""
        code = 1
        try:
            os.dup2(output, 1)
            self._libc.ptrace(_TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            function()
            code = 0
        except BaseException:  # noqa: BLE001 - it is shown, and nothing of the tests runs on here
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)

    def writes(self) -> Iterator[Write]:
        """Yield each write before it is made; the next step lets it happen."""
        entering = True
        while os.WIFSTOPPED(os.waitpid(self._pid, 0)[1]):
            entering = not entering
            if entering and (write := self._write()):
                yield write
            self._libc.ptrace(_SYSCALL, self._pid, None, None)

    def kill(self) -> None:
        """End it before the write that was last seen."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def output(self) -> str:
        """Return what it wrote to its descriptor 1, once it has ended."""
        with open(self._said) as said:
            return said.read()

    def _write(self) -> Write | None:
        registers = (ctypes.c_ulong * _REGISTERS)()
        self._libc.ptrace(_GETREGS, self._pid, None, registers)
        name = CALLS.get(registers[_ORIG_RAX])
        if name is None:
            return None
        if name == "unlink":
            return Write(name, self._memory(registers[_RDI], 4096).split(b"\0")[0].decode())
        path = os.readlink(f"/proc/{self._pid}/fd/{registers[_RDI]}")
        match name:
            case "write" | "pwrite64":
                return Write(name, path, registers[_R10], self._memory(registers[_RSI], registers[_RDX]))
            case "ftruncate":
                return Write(name, path, registers[_RSI])
            case _:
                return Write(name, path)

    def _memory(self, address: int, size: int) -> bytes:
        with open(f"/proc/{self._pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size)
