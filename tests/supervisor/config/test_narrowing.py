"""`.strongroom.toml` in a root takes away and adds nothing, whatever it says."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.config.narrowing import NAME, narrowed
from supervisor.config.profiles import Profile, resolve
from supervisor.config.settings import load
from supervisor.errors import ConfigError

SMALL: Final = Profile("p", "", ("read_file", "write_file", "run_cmd"), ("run_cmd",), network=("a:1", "b:2"))

TAKEN: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "nothing": ("", {}, ""),
    "tools": ("tools = ['read_file']", {"tools": ("read_file",), "ask": ()}, "its tools are read_file"),
    "all tools": ("tools = []", {"tools": (), "ask": ()}, "its tools are none"),
    "tools that it has not": (
        "tools = ['read_file', 'fetch_url']",
        {"tools": ("read_file",), "ask": ()},
        "refused: `tools` names fetch_url,",
    ),
    "questions": ("ask = ['write_file']", {"ask": ("run_cmd", "write_file")}, "it asks before each write_file"),
    "no question less": ("ask = []", {}, ""),
    "hosts": ("network = ['b:2']", {"network": ("b:2",)}, "its hosts are b:2"),
    "hosts that it has not": ("network = ['a:1', 'evil:443']", {"network": ("a:1",)}, "`network` names evil:443"),
    "sites": ("web = ['a.org', '*.x.b.org', 'c.b.org']", {}, "its sites are a.org, *.x.b.org, c.b.org"),
    "no sites": ("web = []", {}, "its sites are none"),
    "sites that it has not": (
        "web = ['b.org', 'org', 'x.a.org', 'a .b.org', '*']",
        {},
        "its sites are none; refused: `web`",
    ),
    "a rule": ("[[rules]]\ndecision = 'deny'\nwrites = ['*']", {}, "no program may add or change *"),
}


def in_root(root: Path, text: str) -> Profile:
    (root / NAME).write_text(text)
    return replace(SMALL, root=str(root))


@pytest.mark.parametrize(("text", "left", "told"), TAKEN.values(), ids=TAKEN)
def test_it_takes_away_and_says_so(text: str, left: dict[str, Any], told: str, root: Path) -> None:
    found = narrowed(in_root(root, text), sites=("a.org", "*.b.org"))
    assert {name: getattr(found, name) for name in ("tools", "ask", "network")} == {
        "tools": SMALL.tools,
        "ask": SMALL.ask,
        "network": SMALL.network,
        **left,
    }
    assert found.narrowing is not None
    assert told in "; ".join(found.narrowing.told)


@pytest.mark.parametrize("name", ["code", "vault", "operator", "project"])
def test_no_profile_has_more_by_it(name: str, home: Path, root: Path) -> None:
    every = '["read_file", "write_file", "run_cmd", "exec_shell", "fetch_url", "plan"]'
    (root / NAME).write_text(f'tools = {every}\nnetwork = ["evil:443", "registry:npm"]\nmax_steps = 1000\n')
    before = resolve(load({"STRONGROOM_HOME": str(home)}), name, str(root))
    after = narrowed(before)
    assert set(after.tools) < set(before.tools)
    assert set(before.ask) & set(after.tools) == set(after.ask)
    assert set(after.network) <= set(before.network)
    assert {each.name for each in after.registries} == {each.name for each in before.registries} & {"npm"}
    assert (after.root, after.writable, after.view, after.trusted) == (
        before.root,
        before.writable,
        before.view,
        before.trusted,
    )


def fifo(root: Path) -> None:
    os.mkfifo(root / NAME)


WRONG: Final[dict[str, tuple[str | Callable[[Path], object], str]]] = {
    "an unknown key": ("tool = []", f"{NAME}:1: unknown name 'tool'; did you mean 'tools'?"),
    "what only a person may say": ("writable = true", "unknown name 'writable'"),
    "a rule that allows": ("[[rules]]\ndecision = 'allow'\nprograms = ['make']", "it can only deny, and not allow."),
    "a rule that asks": ("[[rules]]\ndecision = 'ask'", "it can only deny, and not ask."),
    "steps without end": ("\nmax_steps = 5000", f"{NAME}:2: `max_steps` is 5000"),
    "no TOML": ("tools = ", "it is not valid TOML"),
    "deep": ("x = " + "[" * 9_000, "it is nested too deep"),
    "too large": ("#" * 20_000, "has more than 16384 bytes"),
    "a link": (lambda root: (root / NAME).symlink_to("/etc/passwd"), "it is a link, which is not followed"),
    "a pipe": (fifo, "it is no regular file"),
    "a directory": (lambda root: (root / NAME).mkdir(), "it is no regular file"),
}


@pytest.mark.parametrize(("what", "words"), WRONG.values(), ids=WRONG)
def test_a_file_that_cannot_be_understood_opens_no_session(
    what: str | Callable[[Path], object], words: str, root: Path
) -> None:
    if isinstance(what, str):
        (root / NAME).write_text(what)
    else:
        what(root)
    with pytest.raises(ConfigError) as caught:
        narrowed(replace(SMALL, root=str(root)))
    assert words in str(caught.value)
    assert "root:x" not in str(caught.value)
