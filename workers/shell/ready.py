"""What a shell worker must have before it shuts itself in: everything imported, everything that it was told, checked.

Rule: the supervisor says where things are, in `Start.equipment`; here it is only read, and what would let a command
change the programs that commands are run with is left out.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from workers import kernel, wire
from workers.confine import denylist, noted
from workers.confine.commands import FAMILIES, NO_NETWORK, ON_THE_ROOT_ITSELF, SHELL
from workers.confine.denylist import Deny, Notify
from workers.confine.order import Enforced, Prepared
from workers.confine.probe import ATTEMPTS, try_doors
from workers.confine.seccomp import ARCHITECTURES, Instruction
from workers.shell import (
    attempts,
    doors,
    layout,
    text,  # noqa: F401 - of the tools, which can import nothing any more when they are called
)
from workers.shell.command import NotStarted, try_locks
from workers.shell.engine import MARGIN_S, Engine, Filter
from workers.shell.places import show_root_itself
from workers.shell.programs import environment, search_path
from workers.shell.steps import COMMAND, WORKER

_SHORTEST_S: Final = 0.1


class _Equipment(msgspec.Struct, frozen=True):
    """What `Start.equipment` holds, in JSON each."""

    programs: tuple[str, ...]
    toolchains: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    timeout_s: float = 30.0
    disk_mb: int = 1024


def prepared(start: wire.Start) -> Prepared:
    """Read what was given, and import what will be needed.

    Raises:
        ValueError: something of it is missing or wrong, or the root cannot be used.
    """
    if kernel.MACHINE not in ARCHITECTURES:
        raise ValueError(f"there is no table of system calls for {kernel.MACHINE}")
    given = {name: msgspec.Raw(value.encode()) for name, value in start.equipment.items()}
    equipment = msgspec.json.decode(msgspec.json.encode(given), type=_Equipment)
    root = start.context.working_directory
    toolchains = tuple(each for each in equipment.toolchains if not layout.within(each, root))
    wanted = layout.Layout(root, start.writable, toolchains, start.limits.processes, equipment.disk_mb)
    layout.check(wanted)
    path = search_path([each for each in equipment.path if not layout.within(each, root)])
    paths = noted.PATHS if attempts.tells_paths() else ()
    engine = Engine(
        start,
        SHELL,
        wanted,
        equipment.programs,
        path,
        environment(path),
        max(_SHORTEST_S, min(equipment.timeout_s, start.call_s - MARGIN_S)),
        COMMAND,
        Filter(_filter((*SHELL.denies, *ON_THE_ROOT_ITSELF))),
        show_root_itself,
        Filter(_filter(SHELL.denies), _filter((*_LOCKS, noted.sockets(FAMILIES), *paths))),
    )
    return Prepared(engine, steps=WORKER, doors=lambda opens: _try_doors(engine, opens))


_LOCKS: Final = tuple(row for row in SHELL.denies if row is not NO_NETWORK)


def _filter(denies: tuple[Deny | Notify, ...]) -> tuple[Instruction, ...]:
    return denylist.assemble(denies, kernel.MACHINE)


def _try_doors(engine: Engine, opens: Sequence[str]) -> Iterable[wire.Door]:
    """Try the doors as a command would."""

    def work(_held: Enforced) -> bytes:
        every = (*ATTEMPTS, *doors.ATTEMPTS)
        return msgspec.msgpack.encode(tuple(try_doors(opens, every, doors.REFUSALS)))

    try:
        return msgspec.msgpack.decode(try_locks(engine, work), type=tuple[wire.Door, ...])
    except NotStarted as error:
        return (wire.Door("run a command", shut=False, detail=f"it cannot be locked in: {error}"),)
