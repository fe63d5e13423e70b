"""What a category's workers are given besides the root: paths, files and switches, by name.

Rule: looked up where workers are started, by the one who reads the configuration; a worker is told, and looks for
nothing. What is missing is told by the worker, which then refuses to serve: `strongroom doctor` shows it.
"""

import site
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import json

from supervisor.categories import shell
from supervisor.categories.web import beside
from supervisor.config.settings import Settings
from workers.catalog import CATEGORIES


def equipment(settings: Settings, category: str, network: Sequence[str] = ()) -> dict[str, str]:
    """Return what `wire.Start` takes along for a category; `network` is the profile's."""
    find = _CATEGORIES.get(category)
    given = {} if find is None else find(settings)
    return {**given, **_network(settings, network)} if network and CATEGORIES[category].networked else given


def _network(settings: Settings, places: Sequence[str]) -> dict[str, str]:
    """Return what a worker needs to know of the network that its commands may be given."""
    file = settings.config.web.ca_file
    authorities = "" if file is None else str(beside(settings.config_file, file))
    return {"network": json.encode(places).decode(), "ca_file": json.encode(authorities).decode()}


def _search(_settings: Settings) -> dict[str, str]:
    return {"rg": str(_program("rg"))}


def _web(settings: Settings) -> dict[str, str]:
    web = settings.config.web
    given = {"fetch_s": repr(web.fetch_s), "http": "yes" if web.http else ""}
    if web.ca_file is not None:
        given["ca_file"] = str(beside(settings.config_file, web.ca_file))
    return given


def _shell(settings: Settings) -> dict[str, str]:
    section = settings.config.shell
    found = shell.find(section.toolchains, settings.home)
    given = {
        "programs": section.programs,
        "toolchains": found.shown,
        "path": found.path,
        "timeout_s": section.timeout_s,
        "disk_mb": section.disk_mb,
    }
    return {name: json.encode(value).decode() for name, value in given.items()}


def _restore(settings: Settings) -> dict[str, str]:
    return {"kept": str(settings.kept), "scratch": str(settings.kept / "scratch")}


_CATEGORIES: Final[Mapping[str, Callable[[Settings], dict[str, str]]]] = MappingProxyType(
    {"search": _search, "web": _web, "shell": _shell, "restore": _restore}
)


def _program(name: str) -> Path:
    """Return where a program that was installed with us lies, or would lie.

    Not asked of sysconfig: what that loads at its first use takes descriptors, and without one it stays broken for the
    life of this process.
    """
    prefix = Path(sys.prefix)
    installed = (prefix / "bin", prefix / "local/bin")  # the latter where the system's own Python is left alone
    user = Path(site.getuserbase(), "bin")  # pip install --user
    places = [place / name for place in (Path(sys.executable).parent, *installed, user)]
    return next((place for place in places if place.is_file()), places[0])
