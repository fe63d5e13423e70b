"""An install's thousands of names are one line a directory; what somebody edits by hand stays a line of its own."""

from typing import Final

from supervisor.display.changes import overview
from supervisor.display.package_folders import folder_of
from supervisor.display.proposed_effects import presented
from tests.each_row import each_row
from workers.changes.effects import Change, Effects, FoldedNames, NodeState

FOLDERS: Final = {
    "node_modules/a/index.js": "node_modules",
    "web/node_modules/a/node_modules/b/c": "web/node_modules",
    ".venv/lib/x.py": ".venv",
    "src/tiny.egg-info/PKG-INFO": "src/tiny.egg-info",
    "vendor/a/b.go": "vendor",
    "src/vendor/a.py": "",
    "target": "",
    "node_modules.txt": "",
    ".git/node_modules/x": "",
}


@each_row(("path", "folder"), FOLDERS.items(), ids=FOLDERS)
def test_what_counts_as_a_directory_of_packages(path: str, folder: str) -> None:
    assert folder_of(path) == folder


def test_a_directory_of_packages_is_one_line_that_says_how_much() -> None:
    paths = [f"node_modules/{name}/{file}" for name in ("a", "@s/b", "c") for file in ("x.js", "package.json")]
    changes = tuple(Change(path, "added", after=NodeState("file", 0o644, 1000)) for path in [*paths, "package.json"])
    told = presented(Effects(changes, {"added": len(changes)}, b""))
    short, full = ([text for _, text in overview(told, short)] for short in (True, False))
    assert "  node_modules: 3 packages, 6 names, 6.0 kB" in short
    assert [line for line in short if "x.js" in line] == []
    assert len([line for line in full if "x.js" in line]) == 3
    assert any("package.json" in line for line in short)


def test_of_names_that_are_told_together_the_line_says_how_many() -> None:
    listed = tuple(Change(f"node_modules/a/{n}", "added", after=NodeState("file", 0o644, 1000)) for n in range(6))
    more = (FoldedNames("node_modules", {"added": 90}, b"", 4000, protected="shells run it"),)
    told = presented(Effects(listed, {"added": 96}, b"", left_out={"added": 90}, folded=more))
    why = "also one that is protected, because shells run it"
    assert told.packages == {"node_modules": f"1 or more package, 96 names, 10 kB, 90 of them not listed, {why}"}
