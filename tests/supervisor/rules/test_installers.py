"""Which effects are an install's alone, and need no second yes."""

import json
from typing import Any, Final

import pytest

from supervisor.rules.installers import install_of, only_installs
from workers.changes.effects import Change, Effects, Kind, NodeState


def change(path: str, kind: Kind = "file", target: str = "", **more: Any) -> Change:
    return Change(path, "added", None, NodeState(kind, 0o755, target=target), **more)


def link(path: str, target: str) -> Change:
    return change(path, "link", target, leaves=True)


WANTED: Final = [
    (change(".venv/lib/x.py"), True),
    (link(".venv/bin/python", "/usr/bin/python3"), True),
    (link("tools/.venv/bin/python3.11", "/root/.pyenv/versions/3.11.7/bin/python3.11"), True),
    (link(".venv/bin/python", "/etc/shadow"), False),
    (link(".venv/bin/python", "/../../bin/python"), False),
    (link(".venv/bin/pip", "/usr/bin/python3"), False),
    (link(".venv/lib/bin/python", "/usr/bin/python3"), False),
    (link("bin/python", "/usr/bin/python3"), False),
    (change("src/_version.py", ignored=True), True),
    (change("conftest.py", ignored=True, level="asked"), False),
    (change(".git/hooks/x", ignored=True, protected="git runs it"), False),
    (link("data", "/etc"), False),
    (change("src/app.py"), False),
]


@pytest.mark.parametrize(("one", "its"), WANTED, ids=[f"{each.path} {each.leaves}" for each, _ in WANTED])
def test_what_an_install_changes_is_told_from_the_rest(one: Change, its: bool) -> None:
    assert only_installs(Effects((one,), {"added": 1}, b""), ["pypi"]) is its
    assert only_installs(Effects((one,), {"added": 1}, b""), ["npm"]) is (its and one.ignored)


COMMANDS: Final = {
    "npm ci": (("npm",), True),
    "npm --silent install left-pad": (("npm",), True),
    "yarn": (("npm",), True),
    "yarn build": None,
    "python3 -m pip install -r requirements.txt": (("pypi",), True),
    ".venv/bin/pip install x": (("pypi",), True),
    "uv pip install x && cargo fetch": (("pypi", "crates"), True),
    "cd web && pnpm i > /dev/null": (("npm",), True),
    "go mod download; ./run": (("go",), False),
    "npm test": None,
    "cargo build": None,
    "npm install --offline": None,
    "pip install --no-index x": None,
    "npm install $(cat names)": None,
    "eval npm install": None,
    "NPM=1 npm install": None,
    "echo npm install": None,
    "pip list install": None,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_installs_are_known_by_their_words(command: str) -> None:
    install = install_of("run_cmd", json.dumps({"command": command}))
    assert (install and (install.registries, install.alone)) == COMMANDS[command]
