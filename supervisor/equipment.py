"""What a category's workers are given besides the root: paths, files and switches, by name.

Rule: looked up where workers are started, by the one who reads the configuration; a worker is told, and looks for
nothing. What is missing is told by the worker, which then refuses to serve: `strongroom doctor` shows it.
"""

import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import json

from supervisor import toolchains
from supervisor.config import Settings
from supervisor.destinations import beside


def equipment(settings: Settings, category: str) -> dict[str, str]:
    """Return what `wire.Start` takes along for a category."""
    find = _CATEGORIES.get(category)
    return {} if find is None else find(settings)


def _search(_settings: Settings) -> dict[str, str]:
    return {"rg": str(_program("rg"))}


def _web(settings: Settings) -> dict[str, str]:
    web = settings.config.web
    given = {"fetch_s": repr(web.fetch_s), "http": "yes" if web.http else ""}
    if web.ca_file is not None:
        given["ca_file"] = str(beside(settings.config_file, web.ca_file))
    return given


def _shell(settings: Settings) -> dict[str, str]:
    shell = settings.config.shell
    found = toolchains.find(shell.toolchains, settings.home)
    given = {
        "programs": shell.programs,
        "toolchains": found.shown,
        "path": found.path,
        "timeout_s": shell.timeout_s,
        "disk_mb": shell.disk_mb,
    }
    return {name: json.encode(value).decode() for name, value in given.items()}


_CATEGORIES: Final[Mapping[str, Callable[[Settings], dict[str, str]]]] = MappingProxyType(
    {"search": _search, "web": _web, "shell": _shell}
)


def _program(name: str) -> Path:
    """Return where a program that was installed with us lies, or would lie."""
    user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))  # pip install --user
    places = [Path(place) / name for place in (Path(sys.executable).parent, sysconfig.get_path("scripts"), user)]
    return next((place for place in places if place.is_file()), places[0])
