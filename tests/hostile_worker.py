"""A worker with one more tool, `attack`, which runs an attacker's Python in it after lock-down.

It lives the life of a real worker (`workers.__main__.run` with the real confinement). `removed` names the locks
that a test takes out of the table of steps, to show that it was they that held. What the attacker may want is
imported before: after lock-down nothing can be.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import msgspec

from supervisor.pool.template_process import worker_command
from workers import __main__ as worker
from workers import kernel
from workers.catalog import CATEGORIES
from workers.confine import STEPS, confine
from workers.confine.steps import Prepared, Step
from workers.confine.syscalls import NUMBERS
from workers.tool import Args, ToolContext, tool
from workers.wire import messages

Prepare = Callable[[messages.Start, Any], Prepared]
Steps = tuple[tuple[str, Step], ...]

REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.EXDEV, errno.ENOSYS})
"""How a lock says no. Any other errno means that the call went past it."""


def hostile_command(*removed: str, category: str = "files") -> tuple[str, ...]:
    """Return the command of a hostile worker of `category`, without the locks that `removed` names."""
    return worker_command(
        "import sys; sys.path[:0] = sys.argv[1:3]; "
        f"from tests.hostile_worker import main; main({removed!r}, {category!r})"
    )


def call(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """Make a system call by name, past everything that Python would do around it."""
    return kernel.syscall(name, NUMBERS[kernel.MACHINE][name], *arguments)


def descriptors() -> list[int]:
    return [each for each in range(1024) if is_open(each)]


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


TOOLBOX: Mapping[str, Any] = {
    "call": call,
    "ctypes": ctypes,
    "descriptors": descriptors,
    "errno": errno,
    "fcntl": fcntl,
    "kernel": kernel,
    "mmap": mmap,
    "os": os,
    "socket": socket,
    "subprocess": subprocess,
    "sys": sys,
    "threading": threading,
}


def strike(code: str, given: Mapping[str, str | int], **more: Any) -> str:
    """Run `code`; return "refused ERRNO", "passed ERRNO", or "did" and what it left in `result`."""
    names: dict[str, Any] = {**TOOLBOX, **given, **more}
    try:
        exec(code, names)
    except OSError as error:
        word = errno.errorcode.get(error.errno or 0, "?")
        return f"refused {word}" if error.errno in REFUSALS else f"passed {word}"
    return f"did {names.get('result')!r}"


class AttackArgs(Args, frozen=True):
    code: Annotated[str, msgspec.Meta(description="Python to run in the worker.")]
    given: Annotated[dict[str, str | int], msgspec.Meta(description="Names that it finds.")] = msgspec.field(
        default_factory=dict
    )


@tool(AttackArgs, effect=True)
def attack(args: AttackArgs, context: ToolContext) -> str:
    """Run the attacker's Python in this process."""
    return strike(args.code, args.given, context=context, pipe=max(descriptors(), default=-1))


def _without(removed: tuple[str, ...], prepare: Prepare) -> Prepare:
    """Take locks out of a category's own tables as well: those of its worker, of commands, of their proxy."""

    def prepared(start: messages.Start, inputs: messages.Inputs) -> Prepared:
        ready = prepare(start, inputs)
        engine = ready.engine
        if hasattr(engine, "locks"):
            engine = msgspec.structs.replace(engine, locks=_left(removed, engine.locks))
            if network := engine.network:
                network = msgspec.structs.replace(network, locks=_left(removed, network.locks))
                engine = msgspec.structs.replace(engine, network=network)
        return msgspec.structs.replace(ready, steps=_left(removed, ready.steps), engine=engine)

    return prepared


def _left(removed: tuple[str, ...], steps: Steps) -> Steps:
    return tuple(step for step in steps if step[0] not in removed)


def main(removed: tuple[str, ...], category: str) -> None:
    row = CATEGORIES[category]
    steps = tuple(step for step in STEPS if step[0] not in removed)
    if "die_with" in removed:
        vars(worker)["die_with"] = int
    vars(worker)["confine"] = partial(confine, steps=steps)
    weakened = msgspec.structs.replace(row, tools=(*row.tools, attack), prepare=_without(removed, row.prepare))
    os._exit(worker.run(int(sys.argv[-1]), {category: weakened}))
