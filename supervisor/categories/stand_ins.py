"""Stand-ins that version managers put into the PATH, and the directories of programs that they stand for.

Rule: a stand-in looks up a version each time, in a home that no command sees; so it is looked up here, once a session,
as the manager would: what the root or a directory above it asks for, then what the person chose, then the newest. A
directory of stand-ins is known by what lies beside it, wherever it is. What a file of the root asks for is a version's
name and never a path: it chooses among what the manager has installed.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from supervisor.system import safe_files

_LONGEST: Final = 2**18
"""Bytes of a file that names versions."""
_VERSIONS_AT_MOST: Final = 16
"""Of one tool."""
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,100}")
_FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pyenv": ".python-version",
        "rbenv": ".ruby-version",
        "nodenv": ".node-version",
        "goenv": ".go-version",
        "jenv": ".java-version",
        "plenv": ".perl-version",
        "phpenv": ".php-version",
    }
)
"""In which file each manager of this kind finds the version of a directory."""
_MISE_FILES: Final = (
    *(".config/mise/config.toml", ".config/mise.toml", ".mise/config.toml", "mise/config.toml"),
    *(".mise.toml", "mise.toml", "mise.local.toml"),
)
"""Of a root, what counts most last (mise.jdx.dev, "Configuration")."""
_OF_PLUGINS: Final = ("bin", ".npm/bin", ".mix/escripts")
"""Where those of Node.js and Elixir put programs, besides the usual place."""
_PLUGINS: Final[Mapping[str, str]] = MappingProxyType(
    {"nodejs": "node", "golang": "go", "nodejs-lts": "node", "python3": "python"}
)
"""Other names of the same tool."""


def programs_behind(directory: str, root: str, home: str, person: Mapping[str, str]) -> list[str] | None:
    """Return the directories of programs that a directory of stand-ins means in `root`; None where it holds none.

    All paths are absolute, and that of the directory without links. Nothing is checked of what is returned. What the
    variables of the `person` ask for comes first, as for the managers.
    """
    manager, name = os.path.split(directory)
    for stand_ins, beside, look in _MANAGERS:
        if name == stand_ins and os.path.exists(f"{manager}/{beside}"):
            found = look(Path(manager), root, home, person)
            return [str(programs) for each in found for programs in _directories_of(each)]
    return None


def _directories_of(installed: Path) -> list[Path]:
    """Return where an installed version has its programs: in one directory, or as some plugins do, in several."""
    if installed.name == "bin":
        return [installed]
    if os.path.isdir(installed / "bin"):
        return [each for each in (installed / one for one in _OF_PLUGINS) if os.path.isdir(each)]
    return sorted(each for each in installed.glob("*/bin") if os.path.isdir(each))[:_VERSIONS_AT_MOST] or [installed]


def _environments(manager: Path, root: str, _home: str, person: Mapping[str, str]) -> list[Path]:
    """Pyenv, rbenv and their like."""
    versions = manager / "versions"
    program = next(iter(sorted(each.name for each in (manager / "libexec").glob("*env"))), manager.name.lstrip("."))
    asked = person.get(f"{program.upper()}_VERSION", "").replace(":", "\n")
    asked = asked or _nearest(root, _FILES.get(program, ".python-version")) or _text(manager / "version")
    words = [line.split("#")[0].strip().removeprefix(f"{program}-") for line in asked.split("\n")]
    chosen = [word for line in words for word in line.split()][:_VERSIONS_AT_MOST]
    found = [_installed(versions, word) for word in chosen]
    return [each for each in found if each is not None]


def _plugins(manager: Path, root: str, home: str, person: Mapping[str, str]) -> list[Path]:
    """Asdf and mise."""
    installs = manager / "installs"
    wanted = _wanted_tools(root, home)
    found = []
    for plugin in sorted(installs.iterdir()):
        name = plugin.name.upper().replace("-", "_")
        told = [person.get(f"{each}_{name}_VERSION", "").split() for each in ("ASDF", "MISE")]
        asked = told[0] or told[1] or wanted.get(_PLUGINS.get(plugin.name, plugin.name), ())
        chosen = [each for word in asked if (each := _installed(plugin, word))]
        found += chosen or [each for each in (_newest(plugin, ""),) if each]
    return found


def _wanted_tools(root: str, home: str) -> dict[str, tuple[str, ...]]:
    wanted: dict[str, tuple[str, ...]] = {}
    for text, read in (
        (_text(Path(home, ".config/mise/config.toml")), _mise_tools),
        (_text(Path(home, ".tool-versions")), _tool_versions),
        (_nearest(root, ".tool-versions"), _tool_versions),
        *((_nearest(root, each), _mise_tools) for each in _MISE_FILES),
    ):
        wanted |= {_PLUGINS.get(tool, tool): versions for tool, versions in read(text)}
    return wanted


def _tool_versions(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in text.splitlines():
        if words := line.split("#")[0].split():
            yield words[0], tuple(words[1:_VERSIONS_AT_MOST])


def _mise_tools(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    tools = _parsed(tomllib.loads, text).get("tools")
    for tool, wanted in tools.items() if isinstance(tools, dict) else ():
        each = wanted if isinstance(wanted, list) else [wanted]
        versions = [one.get("version") if isinstance(one, dict) else one for one in each]
        yield tool, tuple(version for version in versions[:_VERSIONS_AT_MOST] if isinstance(version, str))


def _volta(manager: Path, root: str, _home: str, _person: Mapping[str, str]) -> list[Path]:
    image = manager / "tools/image"
    chosen = _parsed(json.loads, _text(manager / "tools/user/platform.json"))
    runtime = chosen.get("node")
    chosen |= runtime | {"node": runtime.get("runtime")} if isinstance(runtime, dict) else {}
    own = _parsed(json.loads, _nearest(root, "package.json")).get("volta")
    chosen |= own if isinstance(own, dict) else {}
    tools = ((tool, chosen.get(tool)) for tool in ("npm", "yarn", "pnpm", "node"))
    found = [_installed(image / tool, version if isinstance(version, str) else "") for tool, version in tools]
    return [*(each for each in found if each), *sorted((image / "packages").glob("*"))]


def _rustup(manager: Path, root: str, home: str, person: Mapping[str, str]) -> list[Path]:
    """Rust's own tools stand before its installer's stand-ins where these could not do without a network."""
    found = rustup_home(manager, home, person)
    if found is None:
        return [manager / "bin"]
    toolchains = found / "toolchains"
    text = _nearest(root, "rust-toolchain.toml") or _nearest(root, "rust-toolchain")
    channel = _parsed(tomllib.loads, text).get("toolchain") or text.strip()
    channel = channel.get("channel") if isinstance(channel, dict) else channel
    settings = _parsed(tomllib.loads, _text(found / "settings.toml"))
    overrides = settings.get("overrides")
    overrides = overrides if isinstance(overrides, dict) else {}
    here = next((overrides[each] for each in map(str, (Path(root), *Path(root).parents)) if each in overrides), None)
    asked = [each for each in (person.get("RUSTUP_TOOLCHAIN"), here, channel) if each and isinstance(each, str)][:1]
    wanted = (*asked, settings.get("default_toolchain"))
    chosen = [each for each in (_toolchain(toolchains, one) for one in wanted if isinstance(one, str)) if each][:1]
    stand_ins_work = os.path.isdir(found / "update-hashes") and all(_toolchain(toolchains, each) for each in asked)
    return [manager / "bin", *chosen] if stand_ins_work else [*chosen, manager / "bin"]


def rustup_home(manager: Path, home: str, person: Mapping[str, str]) -> Path | None:
    """Return where rustup, whose stand-ins lie in `bin` of `manager`, keeps what it has installed."""
    own = Path(person.get("RUSTUP_HOME") or os.path.join(home, ".rustup"))
    homes = (own, Path(home, ".rustup"), manager.parent / ".rustup", manager.parent / "rustup", manager)
    return next((each for each in homes if os.path.isdir(each / "toolchains")), None)


def _toolchain(toolchains: Path, channel: str) -> Path | None:
    if not _VERSION.fullmatch(channel):
        return None
    exact = toolchains / channel
    return exact if os.path.isdir(exact) else next(iter(sorted(toolchains.glob(f"{channel}-*"))), None)


_MANAGERS: Final[tuple[tuple[str, str, Callable[[Path, str, str, Mapping[str, str]], list[Path]]], ...]] = (
    ("shims", "versions", _environments),
    ("shims", "installs", _plugins),
    ("bin", "tools/image", _volta),
    ("bin", "bin/rustup", _rustup),
)
"""The directory of stand-ins, what lies beside it, and what finds out what they stand for."""


def _installed(versions: Path, asked: str) -> Path | None:
    """Return the version that is asked for, by its whole name or its first numbers; None where there is none."""
    if not _VERSION.fullmatch(asked):
        return None
    exact = (versions / asked, versions / f"v{asked}")
    return next((each for each in exact if os.path.isdir(each)), None) or _newest(
        versions, f"{asked.removeprefix('v')}."
    )


def _newest(versions: Path, begins: str) -> Path | None:
    try:
        names = [each for each in os.listdir(versions) if each.removeprefix("v").startswith(begins)]
    except OSError:
        return None
    found = [versions / each for each in names if not each.startswith(".") and os.path.isdir(versions / each)]
    return max(found, key=by_version, default=None)


def by_version(place: Path | str) -> tuple[list[int], str]:
    """Return what sorts places by their version, from the oldest to the newest, and those of the same by name."""
    return [int(number) for number in re.findall("[0-9]{1,9}", str(place))], str(place)


def _nearest(root: str, name: str) -> str:
    """Return the text of a file of that name in the root or in the first directory above that has one."""
    return (
        next((text for each in (Path(root), *Path(root).parents) if (text := _text(each / name))), "") if root else ""
    )


def _text(file: Path) -> str:
    try:
        return safe_files.read_bytes(file, _LONGEST).decode("utf-8")
    except (OSError, ValueError):
        return ""


def _parsed(parse: Callable[[str], Any], text: str) -> dict[str, Any]:
    try:
        found = parse(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
