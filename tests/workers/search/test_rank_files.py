"""rank_files: the best files for a few letters, with what is ignored and hidden left out."""

import random
import re
from pathlib import Path
from typing import Final

import pytest

from tests.tool_calls import told
from tests.workers.search.shared import make, open_search, rows, run_by
from workers.search import known_files
from workers.search.file_order import OrderedFiles, folded, pieces
from workers.search.rank_files import rank_files
from workers.tool import ToolContext

FILES: Final = (
    "terminal.py",
    "docs/terminal/notes.md",
    "src/console/terminal.py",
    "src/console/plain_terminal.py",
    "src/console/terminals.py",
    "src/xterminal.py",
    "src/test/ermine/al.py",
    "Über uns/Größe.txt",
)

ORDER: Final = {
    "terminal.py": ["terminal.py", "src/console/terminal.py", "src/console/plain_terminal.py", "src/xterminal.py"],
    "TERMINAL": [
        *("terminal.py", "src/console/terminal.py", "src/console/terminals.py", "src/console/plain_terminal.py"),
        *("src/xterminal.py", "docs/terminal/notes.md", "src/test/ermine/al.py"),
    ],
    "console/t": [*("src/console/terminal.py", "src/console/terminals.py", "src/console/plain_terminal.py")],
    "sct": ["src/console/terminal.py", "src/console/terminals.py", "src/console/plain_terminal.py"],
    "größe": ["Über uns/Größe.txt"],
    "u\u0308ber g": ["Über uns/Größe.txt"],
    "(": [],
}


@pytest.mark.parametrize("typed", ORDER)
def test_files_stand_in_the_order_in_which_they_fit(typed: str) -> None:
    assert OrderedFiles(FILES).first(typed, 20)[: len(ORDER[typed])] == ORDER[typed]
    if not ORDER[typed]:
        assert OrderedFiles(FILES).first(typed, 20) == []


def test_what_is_typed_letter_by_letter_finds_what_it_finds_at_once() -> None:
    chance = random.Random(7)
    letters = "aBé./-^]["
    paths = {"".join(chance.choices(letters, k=chance.randint(1, 9))) for _ in range(400)}
    growing = OrderedFiles(paths)
    for _ in range(25):
        typed = "".join(chance.choices(letters, k=4))
        for end in (1, 2, 3, 4, 2):
            found = growing.first(typed[:end], 500)
            assert found == OrderedFiles(paths).first(typed[:end], 500)
            in_order = re.compile(".*".join(map(re.escape, folded(typed[:end]))), re.DOTALL)
            assert set(found) == {path for path in paths if in_order.search(folded(f"/{path}"))}


def test_pieces_are_counted_from_the_end() -> None:
    assert pieces("/a/bc/abc", "abc") == (0, 1, 0)
    assert pieces("/abc/x", "abc") == (0, 1, 3)
    assert pieces("/a/xb/yc", "abc") == (2, 3, 4)
    assert pieces("/a/b/c", "abc") == (0, 3, 3)


def test_ignored_files_are_left_out_and_hidden_ones_unless_a_dot_is_typed(root: Path, context: ToolContext) -> None:
    make(root, {"a.log": "", "a.md": "", ".env": "", "d/.x/a.md": "", ".git/a": "", ".gitignore": "*.log\n"})
    make(root, {".strongroom-0123456789abcdef.tmp": "", "two\nlines": "", "with spaces/ä b.md": ""})
    (root / "link").symlink_to("a.md")
    assert told(rank_files, context, typed="") == (["a.md", "two\nlines", "with spaces/ä b.md"], "")
    assert told(rank_files, context, typed=".e")[0] == [".env", ".gitignore"]
    assert told(rank_files, context, typed="d/.x/")[0] == ["d/.x/a.md"]
    assert told(rank_files, context, typed=".strong")[0] == []


def test_of_too_many_files_some_are_looked_at(
    root: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_files, "FILES", 3)
    make(root, {f"{number}.md": "" for number in range(9)})
    found, note = told(rank_files, context, typed="md")
    assert (len(found), note) == (3, "only 3 files were looked at")


def test_a_listing_that_takes_too_long_is_cut(root: Path, context: ToolContext, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nprintf 'a.md\\0b.md\\0c'\nexec sleep 100\n")
    slow.chmod(0o755)
    found, note = told(rank_files, run_by(context, str(slow), 0.3), typed="")
    assert (found, note) == (["a.md", "b.md"], "only 2 files were looked at")


def test_a_confined_worker_ranks_files(root: Path) -> None:
    make(root, {"a/note.md": "", "b.log": "", ".gitignore": "*.log"})
    with open_search(root) as worker:
        assert rows(worker, "rank_files", typed="nmd") == ["a/note.md"]
        assert rows(worker, "rank_files", typed="é") == []
        make(root, {"new.md": ""})
        assert rows(worker, "rank_files", typed=".") == [".gitignore", "new.md", "a/note.md"]
