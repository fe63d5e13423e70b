"""Which programs commands may name, and those that lie outside of the system's directories: what is shown of them.

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

from supervisor.errors import ConfigError
from supervisor.system import plain_file

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
    """`[shell]`: which programs `exec_shell` runs, how long a command may take, and what it sees besides the system."""

    programs: tuple[Annotated[str, msgspec.Meta(pattern=r"^[^/\x00-\x20\x7f]+\Z", max_length=255)], ...] = (
        *("git", "cargo", "npm", "yarn", "pnpm", "node", "bun"),
        *("ls", "find", "grep", "mkdir", "rm", "mv", "cp", "touch"),
    )
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0
    toolchains: tuple[str, ...] = ("known",)
    """Directories with programs outside of the system's; "known" stands for those that are known and there."""
    disk_mb: Annotated[int, msgspec.Meta(ge=1, le=2**20)] = 1024
    """Of all that one command writes outside of the root, in its own HOME and /tmp; and as much again of what it
    changes in the root, until that is committed or discarded."""
    escalation: bool = False
    """Whether a person who is asked about a command may let it run unconfined, this once: as themselves, with all that
    they may do."""


class Toolchains(NamedTuple):
    """What a command is shown besides the system."""

    shown: tuple[str, ...]
    """Directories, absolute and without links."""
    path: tuple[str, ...]
    """Those in which programs are looked up."""


def check(named: tuple[str, ...], file: Path, kept: Path) -> None:
    """Refuse what no command may be shown.

    Args:
        named: of `[shell]`.
        file: the configuration, for the message.
        kept: where the journal lies.

    Raises:
        ConfigError: one that was named is no directory, or holds a home or the journal.
    """
    for each in named:
        if each == _ALL_KNOWN:
            continue
        expanded = os.path.expanduser(each)
        if not os.path.isabs(expanded) or not os.path.isdir(expanded):
            raise ConfigError(f"{file}: the toolchain {each!r} of [shell] is no absolute path of a directory.")
        if _holds_a_secret(os.path.realpath(expanded), kept):
            raise ConfigError(
                f"{file}: the toolchain {each!r} of [shell] holds a home, the journal or /etc, which no command may "
                "see. Name the directory of the programs themselves."
            )


def find(named: tuple[str, ...], kept: Path) -> Toolchains:
    """Return the toolchains that the operator `named`, as far as they are there.

    `kept` is where the journal lies.
    """
    wanted: list[str] = []
    for each in named:
        wanted += _known() if each == _ALL_KNOWN else [os.path.realpath(os.path.expanduser(each))]
    there = [each for each in wanted if os.path.isdir(each) and not _holds_a_secret(each, kept)]
    return Toolchains(tuple(there), tuple(f"{each}/bin" if os.path.isdir(f"{each}/bin") else each for each in there))


def _known() -> Iterator[str]:
    for pattern in _KNOWN:
        place = Path(os.path.expanduser(pattern))
        found = [place]
        if place.name == _DEFAULT:
            found = _default_of_rustup(place.parent)
        elif "*" in pattern:
            found = _newest(place)
        yield from map(os.path.realpath, found)


def _default_of_rustup(toolchains: Path) -> list[Path]:
    """Return the toolchain that rustup would use."""
    try:
        settings = tomllib.loads(plain_file.read_bytes(toolchains.parent / "settings.toml", _LONGEST).decode("utf-8"))
    except (OSError, ValueError):
        return []
    name = settings.get("default_toolchain")
    return [toolchains / name] if isinstance(name, str) and "/" not in name else []


def _newest(pattern: Path) -> list[Path]:
    """Return the match of a pattern with the highest version."""
    parts = pattern.parts
    star = next(at for at, part in enumerate(parts) if "*" in part)
    try:
        matches = [each for each in Path(*parts[:star]).glob(parts[star]) if each.joinpath(*parts[star + 1 :]).is_dir()]
    except OSError:
        return []
    matches.sort(key=lambda each: [int(number) for number in re.findall("[0-9]+", each.name)])
    return [matches[-1].joinpath(*parts[star + 1 :])] if matches else []


def _holds_a_secret(real: str, kept: Path) -> bool:
    inner = (os.path.realpath(os.path.expanduser("~")), os.path.realpath(kept), _PASSWORDS)
    return any(each == real or each.startswith(real.rstrip("/") + "/") for each in inner)
