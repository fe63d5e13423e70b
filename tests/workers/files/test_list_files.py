"""The walk of list_files; trees that find_files lists as well stand with its tests."""

import importlib
import os
import random
from pathlib import Path

import pytest

from tests.tool_calls import told
from tests.workers.files.corpus import remove, set_up
from workers.files.entries import Entries, entries_of
from workers.files.list_files import list_files
from workers.tool import ToolContext
from workers.tree.glob import Pattern

module = importlib.import_module("workers.files.list_files")


def listed(context: ToolContext, pattern: str) -> tuple[list[str], str]:
    return told(list_files, context, pattern=pattern)


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")


def test_the_search_ends_at_its_limit_with_a_note(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    make(root, "a/1", "a/2", "a/3", "b/1")
    found, note = listed(context, "**")
    assert len(found) <= 3
    assert "ended after 3 names" in note


def test_a_directory_of_more_names_than_the_limit_is_noted(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    make(root, "1", "2", "3")
    assert listed(context, "*") == (["1", "2", "3"], "")
    make(root, "4")
    found, note = listed(context, "*")
    assert len(found) == 3
    assert "ended after 3 names" in note


def test_names_that_are_not_utf8_are_counted(context: ToolContext, root: Path) -> None:
    make(root, "a")
    (Path(os.fsdecode(os.fsencode(root) + b"/bad\xff"))).write_text("")
    assert listed(context, "*") == (["a"], "1 names that are not UTF-8 are left out")


def test_a_tree_deeper_than_any_path_is_noted_not_fatal(context: ToolContext, root: Path) -> None:
    make(root, "a")
    set_up({"deep": {"dir": str(root / "deep"), "levels": 2100}})
    found, note = listed(context, "**")
    remove(root)
    assert found == ["a"]
    assert "too deep" in note


def test_a_directory_that_goes_away_is_noted(context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, "a/x", "b/x")
    real = entries_of

    def entries(directory: int, most: int) -> Entries:
        if (root / "a").exists():
            (root / "a").rename(root.parent / "away")
            return Entries([("a", "dir"), ("b", "dir")], 0, cut=False)
        return real(directory, most)

    monkeypatch.setattr(module, "entries_of", entries)
    assert listed(context, "**") == (["b/x"], "1 directories could not be read")


def test_directories_that_cannot_match_are_not_opened(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, "a/x", "b/x", "a/c/x")
    real = entries_of
    opened: list[str] = []

    def entries(directory: int, most: int) -> Entries:
        opened.append(os.readlink(f"/proc/self/fd/{directory}"))
        return real(directory, most)

    monkeypatch.setattr(module, "entries_of", entries)
    assert listed(context, "a/*")[0] == ["a/x"]
    assert str(root / "b") not in opened


@pytest.mark.parametrize("seed", range(10))
def test_a_walk_finds_what_matching_each_path_finds(context: ToolContext, root: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        parts = [f"{chance.choice('abc')}d" for _ in range(chance.randint(0, 3))]
        make(root, "/".join([*parts, chance.choice(["a", "b", "c.md", ".h"])]))
    everything = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    for pattern in ("**", "*/*", "**/a", "ad/**/b", "**/bd/**", "{ad,bd}/**/*.md", "**/.h", "?d/[ab]"):
        compiled = Pattern(pattern)
        expected = [path for path in everything if compiled.matches(path)]
        assert listed(context, pattern)[0] == sorted(expected, key=lambda path: path.split("/"))
