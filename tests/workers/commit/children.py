"""A function in a process of its own, which may be killed there, or have a kernel that refuses something."""

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable

from workers import kernel
from workers.confine.seccomp import ALLOW, ARGUMENTS, JUMP_EQUAL, LOAD, RETURN, Instruction, install
from workers.confine.syscalls import NUMBERS

_ERRNO = 0x00050000
_PATIENCE_S = 60
"""After which a child that does not end is killed."""


def in_child(function: Callable[[], object]) -> tuple[int, str]:
    """Call a function in a child; return how the child ended (waitstatus_to_exitcode), and what the function did."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        signal.alarm(_PATIENCE_S)
        try:
            os.write(theirs, str(function()).encode())
            code = 0
        except BaseException:  # noqa: BLE001 - it is shown, and nothing of the tests runs on here
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    os.close(theirs)
    with open(ours, "rb") as answer:
        said = answer.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def refuse_locks(code: int, how: int | None = None) -> None:
    """Let flock(2) fail from here on in this process; only with the operation `how`, if one is given."""
    fails = Instruction(RETURN, 0, 0, _ERRNO | code)
    body = (
        [fails] if how is None else [Instruction(LOAD, 0, 0, ARGUMENTS + 8), Instruction(JUMP_EQUAL, 0, 1, how), fails]
    )
    flock = NUMBERS[kernel.MACHINE]["flock"]
    end = Instruction(RETURN, 0, 0, ALLOW)
    kernel.prctl("PR_SET_NO_NEW_PRIVS", 38, 1)
    install((Instruction(LOAD, 0, 0, 0), Instruction(JUMP_EQUAL, 0, len(body), flock), *body, end))


def refuse_descriptors() -> None:
    """Let no file be opened from here on in this process (EMFILE)."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))


def die_at(event: str, number: int) -> None:
    """Let this process be killed right before it does something the `number`th time: an event of `sys.audit`."""
    left = number

    def hook(happens: str, _arguments: object) -> None:
        nonlocal left
        if happens == event:
            left -= 1
            if not left:
                os.kill(os.getpid(), 9)

    sys.addaudithook(hook)
