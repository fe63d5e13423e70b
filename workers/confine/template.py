"""The template: a process that has imported what workers need, and of which each worker is a copy.

Rule: it knows of no root. It is told nothing but to fork; a worker's descriptors pass through it unread, and are closed
before the next one's come. It has one thread. What it forks is its parent's child, not its own, and is where a process
that was spawned would be by the time that its pid is told: its death is bound, and its session is its own. What all
workers give up, and none needs before that, it has given up for them.

    supervisor ---- a byte, and the worker's descriptors ----> template ---- CLONE_PARENT ----> worker
               <------------------------- the worker's pid ------------------------------------
"""

import os
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

import msgspec

from workers import kernel
from workers.catalog import Category
from workers.confine import seccomp
from workers.confine.privileges import PR_SET_DUMPABLE, empty_bounding_set, undumpable
from workers.tree.obeyed_names import name_table

_FIRST: Final = 3
"""The first descriptor that is free in the template: its own are the socket, and twice nothing."""
_MOST: Final = 5
_PAIR: Final = 2


def fork_workers(bind_death: Callable[[], None], categories: Mapping[str, Category]) -> None:
    """Fork a worker whenever the supervisor asks for one on fd 0; return in each of them alone.

    Args:
        bind_death: lets a worker die with its supervisor.
        categories: all that workers may be of; what they import is imported here after the second worker: one may be
            all that is ever needed, and its spare is not to wait.
    """
    import socket

    undumpable()
    empty_bounding_set()
    connection, fork = socket.socket(fileno=0), kernel.sibling_fork()
    for forked in count(1):
        message, descriptors, _flags, _address = socket.recv_fds(connection, 1, _MOST)
        if not message or descriptors != list(range(_FIRST, _FIRST + len(descriptors))):
            os._exit(0)  # the supervisor has gone, or is none
        if fork() == 0:
            break
        for each in descriptors:
            os.close(each)
        if forked == _PAIR:
            _make_ready(categories)
    bind_death()
    kernel.prctl("PR_SET_DUMPABLE", PR_SET_DUMPABLE, 1)  # as a program is when it starts
    os.setsid()
    connection.send(str(os.getpid()).encode())
    connection.detach()
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
    os.closerange(len(descriptors), descriptors[-1] + 1)


def _make_ready(categories: Mapping[str, Category]) -> None:
    _import_threading()
    name_table()
    for category in categories.values():
        confinement = category.confinement()
        for writable in (False, True):
            seccomp.code(confinement.calls(writable=writable), kernel.MACHINE)
        for name in category.late:
            __import__(name)
        msgspec.msgpack.Decoder(category.inputs)  # what it finds out about a type, it keeps with the type


def _import_threading() -> None:
    """Import it for all that import it, without its hook, which would take 0.3 ms of each fork.

    The hook puts right what threads have left in a copy, which is without them. There are none.
    """
    register = os.register_at_fork
    os.register_at_fork = lambda **_hooks: None
    try:
        import threading  # noqa: F401
    finally:
        os.register_at_fork = register
