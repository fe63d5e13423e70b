"""The row of a category: all that the supervisor knows of it besides its tools.

Rule: whoever iterates over categories takes what it needs from their rows; no other module names one. A row stands
below the configuration: what it makes of a section is made from the section and plain paths.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Meta

from supervisor.categories.registries import Registry
from workers.wire.messages import Inputs, Limits

_Section = TypeVar("_Section", bound=msgspec.Struct)


class CategoryLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """What one worker of a category may use, and how many there are."""

    call_s: Annotated[float, Meta(gt=0, le=3600, description="Seconds that one call may take.")] = 30.0
    workers: Annotated[int, Meta(ge=1, le=64, description="Workers at once; one more is kept as a warm spare.")] = 4
    soft_memory_mb: Annotated[
        int,
        Meta(
            ge=32,
            le=2**20,
            description="A worker that holds more than this between two calls is replaced; at most three quarters of "
            "`memory_mb`.",
        ),
    ] = 256


class Sections(Protocol):
    """The configuration, as a row sees it."""

    def section(self, kind: type[_Section]) -> _Section:
        """Return one of its sections."""
        ...


class Locations(NamedTuple):
    """The paths that inputs are made from."""

    config_file: Path
    home: Path
    packs: Path
    """The directory of undo packs."""


class Surroundings(NamedTuple):
    """What commands have of the person who opened the session (`supervisor.categories.surroundings`)."""

    shown: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    """All three as in `supervisor.categories.toolchains.Toolchains`."""
    environment: tuple[tuple[str, str], ...] = ()
    identity: tuple[str, str] = ("", "")
    ca_files: tuple[str, ...] = ()
    venv_problem: str = ""
    """Why the root's own virtual environment has no Python; for the model, which may have written what it says."""
    silent: str = ""
    """A directory of theirs that did not answer; what came before it was found."""


class ProfileTraits(NamedTuple):
    """What of a profile the inputs of a category depend on."""

    network: tuple[str, ...] = ()
    """Hosts that a person may let a command reach, each "host:port"."""
    surroundings: Surroundings | None = None
    """What commands have of the person; None where nobody has looked."""
    registries: tuple[Registry, ...] = ()
    """Those among them that are registries of packages."""
    copies: bool = False
    """Whether commands are rehearsed in copies of the root, as no sandbox can be made here."""
    machine: bool = False
    """Whether commands see the machine, read-only."""
    localhost: bool = False
    """Whether they have a localhost, of their own."""


class Library(NamedTuple):
    """A library, or a program that comes as one; `strongroom doctor` imports it for real."""

    name: str
    """Its name for pip."""
    modules: tuple[str, ...]
    without: str
    """What does not work without it."""
    slow: bool = False
    """It is only looked for, because importing it takes a second."""


class TrialCall(NamedTuple):
    """A call that `strongroom doctor` makes in a worker, on an empty root."""

    tool: str
    arguments: bytes
    makes: str = ""
    """The file that its rehearsal must foretell; a call without one must just succeed."""


class CategoryRow(msgspec.Struct, frozen=True):
    """A category's row."""

    without: str
    """One sentence: what does not work where its workers do not."""
    section: str = ""
    """The key of its section in config.toml."""
    config: type[msgspec.Struct] | None = None
    """The section's keys."""
    check: Callable[[Sections, Locations], None] = lambda _sections, _locations: None
    """Raises ConfigError where the section names what is not there."""
    limits: CategoryLimits = CategoryLimits()
    """The default of `[limits.CATEGORY]`."""
    fit_limits: Callable[[CategoryLimits, Sections], CategoryLimits] = lambda limits, _sections: limits
    """Widens limits to what its section demands."""
    inputs: Callable[[Sections, Locations, ProfileTraits], Inputs] = lambda _sections, _locations, _traits: Inputs()
    """Makes what its workers are given."""
    works_on_packs: bool = False
    """Its workers open the directory of undo packs as they start."""
    libraries: tuple[Library, ...] = ()
    stands_on: str = ""
    """What doctor says to do where the category's own set-up fails."""
    degraded: str = "Landlock and seccomp alone shut the same doors"
    """What it means that its workers serve without namespaces."""
    trial: TrialCall | None = None
