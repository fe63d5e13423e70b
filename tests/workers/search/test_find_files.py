"""find_files: as list_files, but for what is ignored."""

import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.workers.search.shared import grow, listed, make, ripgrep
from workers.errors import ToolError
from workers.files.list_files import list_files
from workers.search import file_listing as module
from workers.search.searcher import Searcher
from workers.tool import Proposal, ResultWithNote, ToolContext


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
    Tree("ignored", ("a.log", "b", "d/c.log"), "**", ["b"], "*.log\n"),
    Tree("ignored, though it is asked for", ("a.log", "b"), "*.log", [], "*.log\n"),
    Tree("ignored, and taken back", ("a.log", "b.log"), "**", ["b.log"], "*.log\n!b.log\n"),
    Tree("an ignored directory", ("d/a", "e/a"), "**/a", ["e/a"], "d/\n"),
    Tree("a name with a line break", ("a\nb",), "*", ["a\nb"]),
]


@pytest.mark.parametrize("tree", TREES, ids=[tree.name for tree in TREES])
def test_a_tree_is_listed(tree: Tree, root: Path, context: ToolContext) -> None:
    make(root, dict.fromkeys(tree.files, ""))
    if tree.ignored:
        make(root, {".gitignore": tree.ignored})
    assert listed(context, tree.pattern)[0] == tree.found


def test_links_and_fifos_are_not_found(root: Path, context: ToolContext) -> None:
    make(root, {"d/x": ""})
    (root / "file").symlink_to("d/x")
    (root / "directory").symlink_to("d")
    (root / "cycle").symlink_to(".")
    os.mkfifo(root / "pipe")
    assert listed(context, "**")[0] == ["d/x"]


def test_nothing_found_is_said(context: ToolContext) -> None:
    assert listed(context, "*.md") == ([], "no file matches *.md")


def test_the_answer_ends_at_the_limit_with_a_note(
    root: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILES_LIMIT", 3)
    make(root, dict.fromkeys("123456789", ""))
    assert listed(context, "[3-5]") == (["3", "4", "5"], "")
    assert listed(context, "*") == (["1", "2", "3"], "only the first 3 files are listed; use a narrower pattern")


def test_names_that_are_not_utf8_are_counted(root: Path, context: ToolContext) -> None:
    make(root, {"a": ""})
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff")).write_text("")
    assert listed(context, "*") == (["a"], "1 names that are not UTF-8 are left out")
    assert listed(context, "a*") == (["a"], "")
    assert listed(context, "[x-z]*") == ([], "no file matches [x-z]*")


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "{a,../b}"])
def test_a_pattern_that_leads_out_is_refused(pattern: str, context: ToolContext) -> None:
    with pytest.raises(ToolError, match="Path escape") as caught:
        listed(context, pattern)
    assert caught.value.kind == "path_escape"


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
        result = list_files.run(list_files.args(pattern=pattern), context)
        assert not isinstance(result, Proposal)
        everything = result.value if isinstance(result, ResultWithNote) else result
        assert listed(context, pattern)[0] == [path for path in everything if path in taken], pattern


def test_what_takes_too_long_ends_in_time(root: Path, context: ToolContext) -> None:
    make(root, {"a": ""})
    overdue = ToolContext(context.agent, context.root, engine=Searcher(context.engine.program, 1, -time.monotonic()))
    with pytest.raises(ToolError, match="Found so far, incomplete and in no order: nothing") as caught:
        listed(overdue, "**")
    assert caught.value.kind == "timeout"
