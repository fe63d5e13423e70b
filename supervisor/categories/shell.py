"""The supervisor's half of the category `shell`, and `[shell]`: programs, and toolchains outside of the system's.

Rule: each place is named one by one, and is a program's own directory; never a home, nor the directory of a program's
settings, where it keeps its passwords. What the operator names replaces what is known here.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from supervisor.categories.row import CategoryLimits, CategoryRow, Locations, ProfileTraits, Sections, TrialCall
from supervisor.categories.web import ca_file
from supervisor.errors import ConfigError
from supervisor.system import safe_files
from workers.shell.shell_inputs import ENDS_S, ShellInputs

_KNOWN: Final = (
    "~/.rustup/toolchains/DEFAULT",
    "~/.cargo/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.volta/bin",
    "~/.volta/tools",
    "~/.nvm/versions/node/*",
    "~/.local/share/fnm/node-versions/*/installation",
    "~/.local/share/pnpm",
    "~/.local/share/mise/installs/node/*",
    "~/.asdf/installs/nodejs/*",
    "/opt/node*",
)
"""Where installers of the default programs put them, the first one counts; of several versions in one place the newest.
Rust's own tools stand before its installer's stand-ins, which want to write where they are installed."""

_DEFAULT: Final = "DEFAULT"
_ALL_KNOWN: Final = "known"
_LONGEST: Final = 2**20
"""Bytes of settings that are read."""
_PASSWORDS: Final = "/etc/shadow"


class ShellConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Programs that `exec_shell` may run, how long a command may take, and what it sees besides the system."""

    programs: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[^/\x00-\x20\x7f]+\Z", max_length=255)], ...],
        Meta(
            description="Programs that `exec_shell` runs, by exact name. What they start is held by the sandbox, not "
            "by this list."
        ),
    ] = (
        *("git", "cargo", "npm", "yarn", "pnpm", "node", "bun"),
        *("ls", "find", "grep", "mkdir", "rm", "mv", "cp", "touch"),
    )
    timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds after which a command is killed with everything that it started. Its memory, "
            "processes and file sizes are limited by [limits.shell].",
        ),
    ] = 30.0
    toolchains: Annotated[
        tuple[str, ...],
        Meta(
            description='Directories with programs outside of the system\'s, shown to be read and run; "known" stands '
            "for those of Rust, Node, Bun and Deno that are there."
        ),
    ] = ("known",)
    disk_mb: Annotated[
        int,
        Meta(
            ge=1,
            le=2**20,
            description="Megabytes that one command may write to its own HOME and /tmp, which go with it; and as much "
            "again of changes in the root until they are committed or discarded.",
        ),
    ] = 1024
    escalation: Annotated[
        bool,
        Meta(
            description="Offer the person who is asked about a command to let it run unconfined, this once: as "
            "themselves, with all that they may do, and without undo."
        ),
    ] = False
    max_timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="The most seconds that a call may ask for, with its argument `timeout_s`; at least those of "
            "`timeout_s` here.",
        ),
    ] = 600.0


class Toolchains(NamedTuple):
    """The toolchains that a command sees besides the system."""

    shown: tuple[str, ...]
    """Directories, absolute and without links."""
    path: tuple[str, ...]
    """Those in which programs are looked up."""


def _check(sections: Sections, locations: Locations) -> None:
    """Refuse toolchains that no command may be shown.

    Raises:
        ConfigError: one is no directory, or holds a home or the journal.
    """
    for each in sections.section(ShellConfig).toolchains:
        if each == _ALL_KNOWN:
            continue
        where = f"{locations.config_file}: the toolchain {each!r} of [shell]"
        expanded = os.path.expanduser(each)
        if not os.path.isabs(expanded) or not os.path.isdir(expanded):
            raise ConfigError(f"{where} is not the absolute path of a directory.")
        if _holds_private_files(os.path.realpath(expanded), locations.home):
            raise ConfigError(
                f"{where} holds a home, the journal or /etc, which no command may see. Name the directory of the "
                "programs themselves."
            )


def find_toolchains(named: tuple[str, ...], home: Path) -> Toolchains:
    """Return those of the toolchains `named` by the operator that exist; `home` holds the journal."""
    wanted: list[str] = []
    for each in named:
        wanted += _known_toolchains() if each == _ALL_KNOWN else [os.path.realpath(os.path.expanduser(each))]
    there = [each for each in wanted if os.path.isdir(each) and not _holds_private_files(each, home)]
    return Toolchains(tuple(there), tuple(f"{each}/bin" if os.path.isdir(f"{each}/bin") else each for each in there))


def _known_toolchains() -> Iterator[str]:
    for pattern in _KNOWN:
        place = Path(os.path.expanduser(pattern))
        found = [place]
        if place.name == _DEFAULT:
            found = _rustup_default(place.parent)
        elif "*" in pattern:
            found = _newest_version(place)
        yield from map(os.path.realpath, found)


def _rustup_default(toolchains: Path) -> list[Path]:
    """Return the toolchain that rustup uses by default."""
    try:
        settings = tomllib.loads(safe_files.read_bytes(toolchains.parent / "settings.toml", _LONGEST).decode("utf-8"))
    except (OSError, ValueError):
        return []
    name = settings.get("default_toolchain")
    return [toolchains / name] if isinstance(name, str) and "/" not in name else []


def _newest_version(pattern: Path) -> list[Path]:
    """Return the match of a pattern with the highest version."""
    parts = pattern.parts
    star = next(at for at, part in enumerate(parts) if "*" in part)
    try:
        matches = [each for each in Path(*parts[:star]).glob(parts[star]) if each.joinpath(*parts[star + 1 :]).is_dir()]
    except OSError:
        return []
    matches.sort(key=lambda each: [int(number) for number in re.findall("[0-9]+", each.name)])
    return [matches[-1].joinpath(*parts[star + 1 :])] if matches else []


def _holds_private_files(real: str, home: Path) -> bool:
    inner = (os.path.realpath(os.path.expanduser("~")), os.path.realpath(home), _PASSWORDS)
    return any(each == real or each.startswith(real.rstrip("/") + "/") for each in inner)


def _fit_limits(limits: CategoryLimits, sections: Sections) -> CategoryLimits:
    """A call always has the time that a command has."""
    call_s = sections.section(ShellConfig).timeout_s + ENDS_S
    return msgspec.structs.replace(limits, call_s=max(limits.call_s, call_s))


def _inputs(sections: Sections, locations: Locations, traits: ProfileTraits) -> ShellInputs:
    section = sections.section(ShellConfig)
    toolchains = find_toolchains(section.toolchains, locations.home)
    authorities = ca_file(sections, locations) if traits.network else ""
    most = max(section.timeout_s, section.max_timeout_s)
    return ShellInputs(
        section.programs,
        *toolchains,
        section.timeout_s,
        section.disk_mb,
        traits.network,
        authorities,
        max_timeout_s=most,
    )


ROW: Final = CategoryRow(
    "Commands do not run here: each needs a sandbox, made of user namespaces and mounts in them.",
    section="shell",
    config=ShellConfig,
    check=_check,
    limits=CategoryLimits(memory_mb=2048, cpu_s=36_000, processes=384, open_files=1024, file_mb=1024),
    fit_limits=_fit_limits,
    inputs=_inputs,
    trial=TrialCall("run_cmd", b'{"command": "echo rehearsed > made"}', makes="made"),
)
