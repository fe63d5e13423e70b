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

from supervisor.categories import shell
from supervisor.categories.web import beside
from supervisor.config.settings import Settings
from workers.restore.restore_inputs import RestoreInputs
from workers.search.search_inputs import SearchInputs
from workers.shell.shell_inputs import ShellInputs
from workers.web.web_inputs import WebInputs
from workers.wire.messages import Inputs


def category_inputs(settings: Settings, category: str, network: Sequence[str] = ()) -> Inputs:
    """Return what `wire.Start` takes along for a category; `network` is the profile's."""
    make = _CATEGORIES.get(category)
    return Inputs() if make is None else make(settings, network)


def _ca_file(settings: Settings) -> str:
    file = settings.config.web.ca_file
    return "" if file is None else str(beside(settings.config_file, file))


def _search(_settings: Settings, _network: Sequence[str]) -> SearchInputs:
    return SearchInputs(str(_program("rg")))


def _web(settings: Settings, _network: Sequence[str]) -> WebInputs:
    web = settings.config.web
    return WebInputs(web.fetch_s, web.http, _ca_file(settings))


def _shell(settings: Settings, network: Sequence[str]) -> ShellInputs:
    section = settings.config.shell
    found = shell.find(section.toolchains, settings.home)
    ca_file = _ca_file(settings) if network else ""
    return ShellInputs(
        section.programs, found.shown, found.path, section.timeout_s, section.disk_mb, tuple(network), ca_file
    )


def _restore(settings: Settings, _network: Sequence[str]) -> RestoreInputs:
    return RestoreInputs(str(settings.kept), str(settings.kept / "scratch"))


_CATEGORIES: Final[Mapping[str, Callable[[Settings, Sequence[str]], Inputs]]] = MappingProxyType(
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
