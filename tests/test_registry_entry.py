"""The entry for the Agent Client Protocol's registry, by that registry's own rules (its FORMAT and CONTRIBUTING).

The last of them, that `initialize` names a way to log in, is tried in `tests/supervisor/clients/test_bridge.py`.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from supervisor.version import VERSION
from tests.supervisor.command import CODE

PLACE: Final = CODE / "scripts" / "registry"
ICON: Final = (PLACE / "icon.svg").read_text()
PACKAGES: Final = frozenset({"npx", "uvx"})
COLOURS: Final = frozenset({"currentColor", "none", "inherit"})


def entry() -> dict[str, Any]:
    found = json.loads((PLACE / "agent.json").read_text())
    assert isinstance(found, dict)
    return found


def complaints(said: dict[str, Any]) -> Iterator[str]:
    """Yield what the registry would refuse of an entry."""
    yield from (name for name in ("id", "name", "version", "description") if not isinstance(said.get(name), str))
    if not re.fullmatch(r"[a-z][a-z0-9-]*", str(said.get("id"))):
        yield "id"
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", str(said.get("version"))):
        yield "version"
    ways = said.get("distribution")
    if not isinstance(ways, dict) or not ways or not ways.keys() <= PACKAGES:  # binaries want all systems: we have one
        yield "distribution"
        return
    for way in ways.values():
        name, _, pinned = str(way.get("package", "")).partition("==")
        if not name or pinned != said.get("version") or not way.keys() <= {"package", "args", "env"}:
            yield "package"
        if not all(isinstance(each, str) for each in way.get("args", [])):
            yield "args"


def complaints_of_icon(text: str) -> Iterator[str]:
    """Yield what the registry would refuse of an icon, and whatever is no shape."""
    top = ET.fromstring(text)
    if (top.get("width"), top.get("height"), top.get("viewBox")) != ("16", "16", "0 0 16 16"):
        yield "size"
    if "currentColor" not in text:
        yield "no colour of the theme"
    for each in top.iter():
        if each.tag.rpartition("}")[2] not in ("svg", "path", "rect", "circle"):
            yield each.tag
        yield from (each.attrib[name] for name in ("fill", "stroke") if each.get(name, "none") not in COLOURS)
        yield from (name for name in each.attrib if name == "style" or name.startswith("on"))


def test_the_registry_would_take_the_entry_and_its_icon() -> None:
    assert [*complaints(entry()), *complaints_of_icon(ICON)] == []


def test_it_names_this_version_and_the_command_that_the_package_has() -> None:
    said, project = entry(), tomllib.loads((CODE / "pyproject.toml").read_text())
    way = said["distribution"]["uvx"]
    assert (said["version"], way["package"]) == (VERSION, f"{project['project']['name']}=={VERSION}")
    (script,) = project["tool"]["setuptools"]["script-files"]
    assert Path(script).name == said["id"] == project["project"]["name"]
    assert way["args"] == ["acp"]
    assert said["license"] == project["project"]["license"]


REFUSED: Final[list[tuple[dict[str, Any], str]]] = [
    ({"id": "Strongroom"}, "id"),
    ({"version": "0.1"}, "version"),
    ({"description": None}, "description"),
    ({"distribution": {}}, "distribution"),
    ({"distribution": {"binary": {}}}, "distribution"),
    ({"distribution": {"uvx": {"package": "strongroom@latest"}}}, "package"),
    ({"distribution": {"uvx": {"package": "strongroom==0.0.9"}}}, "package"),
]


@pytest.mark.parametrize(("change", "complaint"), REFUSED)
def test_an_entry_that_breaks_a_rule_is_seen(change: dict[str, Any], complaint: str) -> None:
    assert complaint in complaints(entry() | change)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('height="16"', 'height="32"', "size"),
        ("currentColor", "inherit", "no colour of the theme"),
        ('fill="none"', 'fill="#ff0000"', "#ff0000"),
        ("<path", '<path style="fill: red"', "style"),
    ],
)
def test_an_icon_that_breaks_a_rule_is_seen(before: str, after: str, complaint: str) -> None:
    assert before in ICON
    assert complaint in complaints_of_icon(ICON.replace(before, after))
