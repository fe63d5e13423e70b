"""search_files, by what is in the tree and what is asked."""

import os
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tool_calls import refusal, refused
from tests.workers.search.shared import Found, grow, make, ripgrep, run_by, searched
from workers.search import text_search as module
from workers.search.rg_records import LINE_LIMIT
from workers.search.text_search import MATCHES_LIMIT
from workers.tool import ToolContext

LATIN = b"caf\xe9 needle\n"


class Tree(NamedTuple):
    name: str
    files: dict[str, str | bytes]
    places: list[str]
    query: str = "needle"
    glob: str | None = None
    literal: bool = False


def needles(*names: str) -> dict[str, str | bytes]:
    """Return files with one line each, which matches."""
    return dict.fromkeys(names, "needle")


TAKEN_BACK = {".gitignore": "*.log\n", "d/.gitignore": "!*.log\n"}
TREES = [
    Tree("lines are counted from 1", {"a": "x\nneedle\n\nneedle"}, ["a:2", "a:4"]),
    Tree("a line with two matches is one", {"a": "needle needle"}, ["a:1"]),
    Tree("by component, then by line", needles("a/z", "a.txt", "a-b"), ["a/z:1", "a-b:1", "a.txt:1"]),
    Tree("a regular expression", {"a": "foo42\nfoo\n"}, ["a:1"], r"^fo+\d{2}$"),
    Tree("it sees case", {"a": "Needle"}, []),
    Tree("unless it is told not to", {"a": "Needle"}, ["a:1"], "(?i)needle"),
    Tree("Unicode classes", {"a": "Größe 5\n"}, ["a:1"], r"^\w+ \d$"),
    Tree("literal", {"a": "f(x.y)\nf(xzy)\n"}, ["a:1"], "f(x.y)", literal=True),
    Tree("a query like an option", {"a": "-f/etc/passwd\n"}, ["a:1"], "-f/etc/passwd"),
    Tree("a literal query like an option", {"a": "--files\n"}, ["a:1"], "--files", literal=True),
    Tree("carriage returns stay out of the text", {"a": "needle\r\n"}, ["a:1"]),
    Tree("hidden files and directories", needles(".a", ".d/a", "b"), ["b:1"]),
    Tree("a binary file", {"a": b"needle\0\n", "b": "needle"}, ["b:1"]),
    Tree("a draft of a write", needles(".strongroom-0123456789abcdef.tmp"), []),
    Tree("a draft, though hidden names are taken", needles(".strongroom-0123456789abcdef.tmp"), [], glob=".*"),
    Tree("ignored", {".gitignore": "ign/\n*.log\n", **needles("ign/a", "a.log", "b")}, ["b:1"]),
    Tree("ignored in a repository", {".gitignore": "a\n", **needles(".git/config", "a", "b")}, ["b:1"]),
    Tree("ignored, and taken back", {".gitignore": "*.log\n!b.log\n", **needles("a.log", "b.log")}, ["b.log:1"]),
    Tree("ignored below", {"d/.gitignore": "a\n", **needles("d/a", "d/e/a", "a")}, ["a:1"]),
    Tree("taken back below", {**TAKEN_BACK, **needles("d/a.log", "a.log")}, ["d/a.log:1"]),
    Tree("ignored by .ignore and .rgignore", {".ignore": "a\n", ".rgignore": "b\n", **needles("a", "b")}, []),
    Tree("ignored by the repository alone", {".git/info/exclude": "a\n", **needles("a", "b")}, ["b:1"]),
    Tree("UTF-16 with a mark", {"a": "a\nneedle\n".encode("utf-16")}, ["a:2"]),
    Tree("what is not UTF-8", {"a": LATIN}, ["a:1"]),
    Tree("a byte order mark of UTF-8", {"a": "\ufeffneedle\n"}, ["a:1"], "^needle"),
    Tree("a name at any depth", needles("a.py", "d/b.py", "d/c.txt"), ["a.py:1", "d/b.py:1"], glob="*.py"),
    Tree("either ending", needles("a.c", "d/b.h", "x.o"), ["a.c:1", "d/b.h:1"], glob="*.{c,h}"),
    Tree("relative to the root", needles("src/a.py", "x/src/a.py"), ["src/a.py:1"], glob="src/*.py"),
    Tree("any depth below", needles("s/a.py", "s/d/e/b.py"), ["s/a.py:1", "s/d/e/b.py:1"], glob="s/**/*.py"),
    Tree("all below a directory", needles("s/a", "s/d/b", "a"), ["s/a:1", "s/d/b:1"], glob="s/**"),
    Tree("a class", needles("f1", "f2", "fx"), ["f1:1", "f2:1"], glob="f[0-9]"),
    Tree("braces with a slash", needles("s/a.py", "b.md", "d/b.md"), ["b.md:1", "s/a.py:1"], glob="{s/*.py,*.md}"),
    Tree("a glob takes no ignored files", {".gitignore": "a.py\n", **needles("a.py", "b.py")}, ["b.py:1"], glob="*.py"),
    Tree("nor hidden ones", needles(".a.py", ".d/b.py"), [], glob="*.py"),
    Tree("unless it names them", needles(".github/a.yml", ".git/b.yml"), [".github/a.yml:1"], glob=".github/*.yml"),
    Tree("even git's", needles(".git/config"), [".git/config:1"], glob=".git/*"),
    Tree("a name with a space and a comma", needles("a b,c.md"), ["a b,c.md:1"], glob="a b,*.md"),
    Tree("a name with braces", needles("{x}.md"), ["{x}.md:1"], glob="{x}.md"),
    Tree("a name with a colon", needles("include:py"), ["include:py:1"], glob="include:py"),
    Tree("a name with a line break", needles("a\nb"), ["a\nb:1"]),
]


@pytest.mark.parametrize("tree", TREES, ids=[tree.name for tree in TREES])
def test_a_tree_is_searched(tree: Tree, root: Path, context: ToolContext) -> None:
    make(root, tree.files)
    assert searched(context, tree.query, tree.glob, literal=tree.literal).places == tree.places


TEXTS = [
    ("without its end", b"a needle b\r\n", "a needle b"),
    ("with white space", b"\t needle \n", "\t needle "),
    ("with control characters", b"\x1b[31mneedle\x07\n", "\x1b[31mneedle\x07"),
    ("not UTF-8", LATIN, "caf\ufffd needle"),
    ("UTF-16", "é needle\n".encode("utf-16"), "é needle"),
    ("cut behind", b"needle" + b"x" * 400 + b"\n", "needle" + "x" * (LINE_LIMIT - 6) + "..."),
    ("cut before", b"x" * 400 + b"needle\n", "..." + "x" * (LINE_LIMIT - 6) + "needle"),
    (
        "cut on both sides",
        b"x" * 400 + b"needle" + b"y" * 400,
        "..." + "x" * 100 + "needle" + "y" * (LINE_LIMIT - 106) + "...",
    ),
    ("cut where characters are long", ("é" * 400 + "needle").encode(), "..." + "é" * (LINE_LIMIT - 6) + "needle"),
    ("cut and not UTF-8", b"\xff" * 400 + b"needle\n", "..." + "\ufffd" * (LINE_LIMIT - 6) + "needle"),
    ("of exactly the limit", b"needle".ljust(LINE_LIMIT, b"x") + b"\n", "needle".ljust(LINE_LIMIT, "x")),
]


@pytest.mark.parametrize(("name", "line", "shown"), TEXTS, ids=[name for name, _, _ in TEXTS])
def test_a_line_is_shown(name: str, line: bytes, shown: str, root: Path, context: ToolContext) -> None:
    make(root, {"a": line})
    assert searched(context, "needle").matches == [("a", 1, shown)]


HUGE = [
    ("ASCII", b"x" * 3_000_000, b"y" * 3_000_000, "...needle..."),
    ("not UTF-8", b"\xff" * 3_000_000, b"\xfe" * 3_000_000, "...needle..."),
    ("quotes and backslashes", b'"\\' * 1_500_000, b'"},"line_number":' * 100_000, "...needle..."),
]


@pytest.mark.parametrize(("name", "before", "behind", "shown"), HUGE, ids=[name for name, *_ in HUGE])
def test_a_huge_line_is_shown_by_its_match_alone(
    name: str, before: bytes, behind: bytes, shown: str, root: Path, context: ToolContext
) -> None:
    make(root, {"a": b"1\n2\n" + before + b"needle" + behind + b"\nneedle\n", "b": "needle"})
    assert searched(context, "needle").matches == [("a", 3, shown), ("a", 4, "needle"), ("b", 1, "needle")]


@pytest.mark.parametrize("query", ["$", "^", r"\b", "a*$"])
def test_a_huge_line_may_match_with_no_text_at_all(query: str, root: Path, context: ToolContext) -> None:
    make(root, {"a": "x" * 3_000_000})
    assert searched(context, query).matches == [("a", 1, "......")]


def test_links_are_not_followed(root: Path, context: ToolContext, tmp_path: Path) -> None:
    make(tmp_path, needles("outside/secret", "root/d/a"))
    (root / "out").symlink_to("../outside")
    (root / "file").symlink_to("../outside/secret")
    (root / "in").symlink_to("d")
    (root / "cycle").symlink_to(".")
    assert searched(context, "needle").places == ["d/a:1"]


def test_an_entry_that_is_no_file_does_no_harm(root: Path, context: ToolContext) -> None:
    make(root, needles("a"))
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        assert searched(context, "needle").places == ["a:1"]


def test_names_that_are_not_utf8_are_left_out_with_a_note(root: Path, context: ToolContext) -> None:
    make(root, needles("a"))
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff")).write_text("needle\nneedle\n")
    assert searched(context, "needle") == Found(
        [("a", 1, "needle")], "2 matches in files whose names are not UTF-8 are left out"
    )


def test_of_more_than_are_shown_the_note_is_the_same_too(root: Path, context: ToolContext) -> None:
    crowd(root, 450, 1)
    Path(os.fsdecode(os.fsencode(root) + b"/zzz\xff")).write_text("needle\n")
    assert {searched(context, "needle").note for _ in range(5)} == {
        "only the first 100 matches; narrow the query, or use a glob"
    }


@pytest.mark.parametrize(("glob", "where"), [(None, ""), ("*.py", " in files that match *.py")])
def test_nothing_found_is_said(glob: str | None, where: str, root: Path, context: ToolContext) -> None:
    make(root, {"a": "x"})
    assert searched(context, "needle", glob) == Found([], f"no line matches{where}")


def test_a_global_ignore_file_does_not_count(
    root: Path, context: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {".config/git/ignore": "a\n", ".gitconfig": "", ".gitignore": "a\n"})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / ".gitignore"))
    make(root, needles("a"))
    assert searched(context, "needle").places == ["a:1"]


def crowd(root: Path, files: int, lines: int) -> list[str]:
    """Make files with so many matching lines each; return all places, in order."""
    names = sorted(f"d{number % 7}/f{number:04}" for number in range(files))
    make(root, dict.fromkeys(names, "needle\n" * lines))
    return [f"{name}:{line}" for name in names for line in range(1, lines + 1)]


CROWDS = [
    ("just as many as are shown", 10, 10, ""),
    ("one more", 101, 1, "first 100"),
    ("a few more", 150, 1, "first 100"),
    ("many", 450, 1, "first 100"),
    ("very many", 3000, 2, "first 100"),
    ("all in one file", 1, 5000, "first 100"),
    ("many in each file", 20, 500, "first 100"),
]


@pytest.mark.parametrize(("name", "files", "lines", "note"), CROWDS, ids=[name for name, *_ in CROWDS])
def test_the_first_hundred_are_always_the_same(
    name: str, files: int, lines: int, note: str, root: Path, context: ToolContext
) -> None:
    places = crowd(root, files, lines)
    for _ in range(3):
        found = searched(context, "needle")
        assert found.places == places[:MATCHES_LIMIT]
        assert note in found.note


@pytest.mark.parametrize("dense", [(0, 60.0), (10**9, 0.0)])
@pytest.mark.parametrize(("many", "too_many"), [(10**9, 10**9), (0, 0), (0, 10**9)])
def test_both_ways_give_the_same_answer(
    dense: tuple[int, float],
    many: int,
    too_many: int,
    root: Path,
    context: ToolContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = crowd(root, 400, 2)
    monkeypatch.setattr(module, "MANY", many)
    monkeypatch.setattr(module, "_TOO_MANY", too_many)
    monkeypatch.setattr(module, "_DENSE", dense)
    found = searched(context, "needle", "**/f*")
    assert (found.places, found.note) == (
        places[:MATCHES_LIMIT],
        "only the first 100 matches; narrow the query, or use a glob",
    )


QUERIES = [
    ("needle", ()),
    ("absent", ()),
    ("alpha beta", ()),
    (r"\bfn\b.*x1$", ()),
    ("^Größe", ()),
    ("(?i)NEEDLE", ()),
    (r"[aeiou]{3}", ()),
    (r"^$", ()),
    ("needle", ("-g", "*.py")),
    ("gamma", ("-g", "*.{md,c}")),
    ("delta", ("-g", "src/**/*.py")),
    ("x1", ("-g", "f[1-3]*")),
    ("beta", ("-g", "**/lib/**")),
]


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_what_ripgrep_finds(
    seed: int, root: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a glob, match for match; ripgrep's -g would take ignored files too, so there its list is the measure."""
    monkeypatch.setattr(module, "MATCHES_LIMIT", 10**6)
    grow(root, seed, 300)
    taken = {path for path, _ in ripgrep(root, "-e", "")}
    for query, globs in QUERIES:
        expected = [(path, line) for path, line in ripgrep(root, *globs, "-e", query) if path in taken]
        found = searched(context, query, globs[1] if globs else None)
        assert [(path, line) for path, line, _ in found.matches] == expected, (query, globs)


class Refused(NamedTuple):
    name: str
    query: str
    kind: str
    says: str
    glob: str | None = None
    literal: bool = False


REFUSED = [
    Refused("an open group", "(", "invalid_arguments", "unclosed group"),
    Refused("an open class", "[a", "invalid_arguments", "unclosed character class"),
    Refused("nothing to repeat", "*", "invalid_arguments", "repetition operator missing expression"),
    Refused("look-around", "(?=x)", "invalid_arguments", "look-around"),
    Refused("a back-reference", r"(a)\1", "invalid_arguments", "backreferences are not supported"),
    Refused("an escaped line break", r"a\nb", "invalid_arguments", "is not allowed in a regex"),
    Refused("a regex that grows", "a{1000}{1000}{1000}", "invalid_arguments", "exceeds size limit"),
    Refused("nothing", "", "invalid_arguments", "is empty"),
    Refused("nothing, literally", "", "invalid_arguments", "is empty", literal=True),
    Refused("two lines", "a\nb", "invalid_arguments", "line break", literal=True),
    Refused("NUL", "a\0b", "invalid_arguments", "NUL"),
    Refused("a lone surrogate", "a\ud800b", "invalid_arguments", "surrogate"),
    Refused("a megabyte", "a" * 2**20, "invalid_arguments", "longer than"),
    Refused("out of the root", "a", "path_escape", "Access denied: path outside sandbox directory", "../**"),
    Refused("up, without a slash", "a", "path_escape", "Path escape", ".."),
    Refused("an absolute glob", "a", "path_escape", "Path escape", "/etc/*"),
    Refused("out by braces", "a", "path_escape", "Path escape", "{a,../b}/*"),
    Refused("an empty glob", "a", "invalid_arguments", "empty", ""),
    Refused("a directory", "a", "invalid_arguments", "src/**", "src/"),
]


@pytest.mark.parametrize("row", REFUSED, ids=[each.name for each in REFUSED])
def test_a_question_is_refused_with_what_to_do(row: Refused, context: ToolContext) -> None:
    error = refusal(searched, context, row.query, row.glob, literal=row.literal)
    assert error.kind == row.kind
    assert row.says in error.message
    assert len(error.message) < 500
    for word in ("--multiline", "--pcre2", "rg:", "flag"):
        assert word not in error.message


def test_a_bad_regular_expression_is_literally_fine(root: Path, context: ToolContext) -> None:
    make(root, {"a": "f(x\n"})
    assert "set literal to true" in refusal(searched, context, "f(x").message
    assert searched(context, "f(x", literal=True).places == ["a:1"]


def test_a_search_that_takes_too_long_ends_in_time(root: Path, context: ToolContext) -> None:
    make(root, needles("a"))
    with refused("timeout", "Found so far, incomplete and in no order: nothing"):
        searched(run_by(context, context.engine.program, -1.0), "needle")
