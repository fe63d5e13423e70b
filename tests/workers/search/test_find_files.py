"""find_files: as list_files, on the same trees, but for what is ignored."""

import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tool_calls import refused, told
from tests.workers.search.shared import grow, listed, make, ripgrep, run_by
from workers.files.list_files import list_files
from workers.search import file_listing as module
from workers.tool import ToolContext

Listing = Callable[[ToolContext, str], tuple[list[str], str]]


def walked(context: ToolContext, pattern: str) -> tuple[list[str], str]:
    """Call list_files in this process."""
    found, note = told(list_files, context, pattern=pattern)
    return found, note


@pytest.fixture(params=[listed, walked], ids=["find_files", "list_files"])
def listing(request: pytest.FixtureRequest) -> Listing:
    """One of the tools that list files, and then the other."""
    tool: Listing = request.param
    return tool


class Tree(NamedTuple):
    name: str
    files: tuple[str, ...]
    pattern: str
    found: list[str]
    ignored: str = ""


TREES = [
    Tree("by component", ("b", "a/z", "a.txt", "a/b/c", "a-b", "é"), "**", ["a/b/c", "a/z", "a-b", "a.txt", "b", "é"]),
    Tree("relative to the root", ("a.md", "d/b.md"), "*.md", ["a.md"]),
    Tree("at any depth", ("a.md", "d/b.md", "c.txt"), "**/*.md", ["a.md", "d/b.md"]),
    Tree("either", ("a.md", "b.txt", "c.c"), "*.{md,txt}", ["a.md", "b.txt"]),
    Tree("hidden names", (".x", "a/.y", ".d/z", "a/z"), "**/*", ["a/z"]),
    Tree("hidden names when asked for", (".x", "a/.y", "a/z"), "**/.*", [".x", "a/.y"]),
    Tree("below a hidden name", (".github/a", ".git/b"), ".github/**", [".github/a"]),
    Tree("what git keeps", (".git/config", "a"), ".git/*", [".git/config"]),
    Tree("a draft of a write", (".strongroom-0123456789abcdef.tmp",), "**/.*", []),
    Tree("a name that begins like that of a draft", (".strongroom-notes",), ".*", [".strongroom-notes"]),
    Tree("hidden names at the top", (".x", "a/.y", "z"), ".*", [".x"]),
    Tree("a name with a line break", ("a\nb",), "*", ["a\nb"]),
]


IGNORED = [
    Tree("ignored", ("a.log", "b", "d/c.log"), "**", ["b"], "*.log\n"),
    Tree("ignored, though it is asked for", ("a.log", "b"), "*.log", [], "*.log\n"),
    Tree("ignored, and taken back", ("a.log", "b.log"), "**", ["b.log"], "*.log\n!b.log\n"),
    Tree("an ignored directory", ("d/a", "e/a"), "**/a", ["e/a"], "d/\n"),
]


@pytest.mark.parametrize("tree", TREES, ids=[tree.name for tree in TREES])
def test_a_tree_is_listed(tree: Tree, root: Path, context: ToolContext, listing: Listing) -> None:
    make(root, dict.fromkeys(tree.files, ""))
    assert listing(context, tree.pattern)[0] == tree.found


@pytest.mark.parametrize("tree", IGNORED, ids=[tree.name for tree in IGNORED])
def test_ignored_files_are_not_found(tree: Tree, root: Path, context: ToolContext) -> None:
    make(root, dict.fromkeys(tree.files, "") | {".gitignore": tree.ignored})
    assert listed(context, tree.pattern)[0] == tree.found


def test_links_fifos_and_drafts_are_not_listed(root: Path, context: ToolContext, listing: Listing) -> None:
    make(root, {"d/x": "", ".strongroom-0123456789abcdef.tmp": ""})
    (root / "file").symlink_to("d/x")
    (root / "directory").symlink_to("d")
    (root / "cycle").symlink_to(".")
    os.mkfifo(root / "pipe")
    assert listing(context, "{**,.*}")[0] == ["d/x"]


def test_nothing_found_is_said(context: ToolContext, listing: Listing) -> None:
    assert listing(context, "*.md") == ([], "no file matches *.md")


def test_the_answer_ends_at_the_limit_with_a_note(
    root: Path, context: ToolContext, listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (module, importlib.import_module("workers.files.list_files")):
        monkeypatch.setattr(each, "FILES_LIMIT", 3)
    make(root, dict.fromkeys("123456789", ""))
    assert listing(context, "[3-5]") == (["3", "4", "5"], "")
    assert listing(context, "*") == (["1", "2", "3"], "only the first 3 files are listed; use a narrower pattern")


def test_names_that_are_not_utf8_are_counted(root: Path, context: ToolContext) -> None:
    make(root, {"a": ""})
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff")).write_text("")
    assert listed(context, "*") == (["a"], "1 names that are not UTF-8 are left out")
    assert listed(context, "a*") == (["a"], "")
    assert listed(context, "[x-z]*") == ([], "no file matches [x-z]*")


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "{a,../b}"])
def test_a_pattern_that_leads_out_is_refused(pattern: str, context: ToolContext, listing: Listing) -> None:
    with refused("path_escape", "Path escape"):
        listing(context, pattern)


PATTERNS = [
    "**",
    "**/*.py",
    "src/**",
    "{docs,lib}/**/*.md",
    "f[0-9].*",
    "**/f1?.{c,txt}",
    ".hidden/**",
    "**/.gitignore",
    "**/*",
]


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_of_what_list_files_lists_all_that_is_not_ignored(seed: int, root: Path, context: ToolContext) -> None:
    grow(root, seed, 200)
    taken = {path for path, _ in ripgrep(root, "--hidden", "--text", "-e", "")} | {
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.stat().st_size
    }
    for pattern in PATTERNS:
        everything, _ = walked(context, pattern)
        assert listed(context, pattern)[0] == [path for path in everything if path in taken], pattern


def test_a_search_that_takes_too_long_ends_in_time(root: Path, context: ToolContext) -> None:
    make(root, {"a": ""})
    with refused("timeout", "Found so far, incomplete and in no order: nothing"):
        listed(run_by(context, context.engine.program, -time.monotonic()), "**")
