"""What the tools of this category stand on: everything that does not change from one command to the next.

Rule: data, read from `wire.Start` and what the supervisor found; nothing here has been looked for.
"""

from collections.abc import Mapping

import msgspec

from workers import wire
from workers.confine.order import Step
from workers.confine.policy import Confinement
from workers.confine.seccomp import Instruction
from workers.shell.layout import Layout
from workers.shell.places import Place


class Engine(msgspec.Struct, frozen=True):
    """Of one worker."""

    start: wire.Start
    confinement: Confinement
    layout: Layout
    programs: tuple[str, ...]
    """What `exec_shell` may be asked for."""
    path: tuple[str, ...]
    environment: Mapping[str, str]
    timeout_s: float
    locks: tuple[tuple[str, Step], ...]
    """What a command is locked in with, in its own process, before it becomes the program."""
    filter: tuple[Instruction, ...]
    """Of system calls: what the confinement denies where the root is shown so, assembled once."""
    place: Place
