"""Data that commands run with, the same from one command to the next.

Rule: data, read from `wire.Start` and what the supervisor found; nothing here has been looked for.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from workers.confine.confinements import Confinement
from workers.confine.steps import Step
from workers.shell.run.attempts import Answer
from workers.shell.run.process_group import NamespaceGroup, ProcessGroup
from workers.shell.sandbox.command_mounts import Place
from workers.shell.sandbox.private_root import Layout
from workers.wire import messages

MARGIN_S: Final = 1.0
"""Before the supervisor's patience ends, at least: for killing what is left of a command, and the answer."""


class Filter(NamedTuple):
    """Of system calls, assembled and packed once: as it is put on a command."""

    plain: bytes
    """Empty where nothing runs unless the worker can be asked."""
    notifying: bytes = b""
    """The same, asking the worker about sockets (`workers.shell.run.attempts`); empty where it is not to be asked."""


class Network(msgspec.Struct, frozen=True):
    """Of a profile that names hosts: how a command reaches them."""

    places: tuple[str, ...]
    """Each "host:port"."""
    filter: Filter
    """Instead of that for an overlay."""
    locks: tuple[tuple[str, Step], ...]
    """What the proxy is locked in with."""

    @property
    def local_ports(self) -> frozenset[int]:
        """The ports of those places that are on this machine's localhost."""
        local = (each.rpartition(":")[2] for each in self.places if each.startswith(("localhost:", "127.", "[::1]")))
        return frozenset(map(int, local))


class CopyPlaces(NamedTuple):
    """The places of a command in a copy without namespaces; absolute, without links."""

    top: str
    root: str
    home: str
    tmp: str
    etc: str
    """Files that it reads."""


class CommandRunner(msgspec.Struct, frozen=True):
    """Of one worker."""

    start: messages.Start
    confinement: Confinement
    layout: Layout
    programs: tuple[str, ...]
    """What `exec_shell` may be asked for."""
    path: tuple[str, ...]
    environment: Mapping[str, str]
    timeout_s: float
    """Of a command that does not say how long it may take; of one that runs, what it was given."""
    max_timeout_s: float
    locks: tuple[tuple[str, Step], ...]
    """What a command is locked in with, in its own process, before it becomes the program."""
    filter: Filter
    """What the confinement denies where the root is shown as `place` does."""
    place: Place
    overlay_filter: Filter
    """The same where an overlay of the root is shown."""
    look_filter: Filter
    """The same for a command that only looks (`workers.shell.look`)."""
    network: Network | None = None
    """What a command is given besides once a person has said so; None where the profile names no hosts."""
    own: tuple[str, ...] = ()
    """As in `ShellInputs`."""
    venv_problem: str = ""
    """Why the root's own virtual environment cannot work; empty where it can, or is none."""
    hold: Callable[[int], None] = os.close
    """Takes a descriptor of a command's mount namespace: as long as it is open, nothing is unmounted."""
    lacks_machine: bool = False
    """Whether commands were to see the machine, and this system does not let them."""
    ports: tuple[int, ...] | None = ()
    """Those that a command may connect to: the proxy's; None for all of a localhost of its own, where it may listen."""
    overlay_ports: tuple[int, ...] | None = ()
    """The same where an overlay of the root is shown, before there is a proxy."""
    copies: str = ""
    """The directory in which a copy of the root is made for each command, where there are no namespaces."""
    copy_mb: int = 0
    """What a copy of the root may hold, there or in memory; with 0 there is none."""
    group: Callable[[], ProcessGroup] = NamespaceGroup
    calls: Callable[[ProcessGroup], Answer] | None = None
    """Makes what answers a command's calls, where the worker does some in its place."""
    is_over_disk: Callable[[Sequence[str]], bool] = lambda _pids: False
    """Says whether processes have written more than they may, where the file system does not hold them to that."""
    online: bool = False
    """Whether the command has a network."""
    copied: CopyPlaces | None = None
    """Of a command in a copy without namespaces."""

    @property
    def held(self) -> str:
        """Where the root lies for this process."""
        return f"/proc/self/fd/{self.start.root_fd}" if self.copies else self.layout.held
