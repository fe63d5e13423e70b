"""`strongroom` on a kernel that lacks some system calls: they end in ENOSYS.

With `--category CATEGORY` for arguments, it writes what doctor finds of that category, as JSON.

    python -m tests.supervisor.lacking NUMBER,NUMBER... ARGUMENTS...
"""

import errno
import runpy
import sys

import msgspec

from supervisor.config.settings import load
from supervisor.doctor.workers import check_category
from workers import kernel
from workers.confine.seccomp import ALLOW, JUMP_EQUAL, LOAD, RETURN, Instruction, install

_FAIL_WITH = 0x00050000
"""SECCOMP_RET_ERRNO (seccomp(2))."""
_PR_SET_NO_NEW_PRIVS = 38


def main() -> None:
    program = [Instruction(LOAD, 0, 0, 0)]
    for number in map(int, sys.argv.pop(1).split(",")):
        program += [Instruction(JUMP_EQUAL, 0, 1, number), Instruction(RETURN, 0, 0, _FAIL_WITH | errno.ENOSYS)]
    kernel.prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)
    install((*program, Instruction(RETURN, 0, 0, ALLOW)))
    if sys.argv[1] == "--category":
        sys.stdout.buffer.write(msgspec.json.encode(check_category(load(), sys.argv[2])))
    else:
        runpy.run_module("supervisor", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
