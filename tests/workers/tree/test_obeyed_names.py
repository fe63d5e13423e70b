"""Every row of the table of names, in the tools that write files and in what is said of a command's changes."""

import os
from collections.abc import Iterator, Mapping

import pytest

from tests.tool_calls import refusal
from workers.changes.effects import Change, NodeState
from workers.files.edit_file import edit_file
from workers.files.write_file import write_file
from workers.tool import Proposal, Tool, ToolContext
from workers.tree.obeyed_names import ObeyedName, folded, obeyed, read_rows, short_name
from workers.tree.root import Root
from workers.treediff.comparison import Difference
from workers.treediff.effects_of import build_effects
from workers.treediff.snapshot import Node
from workers.wire.messages import Context

ROWS = read_rows()
OBEYED = [row for row in ROWS if row.level]
each_row = pytest.mark.parametrize("row", OBEYED, ids=[row.pattern for row in OBEYED])
MADE = Node(NodeState("file", 0o644), device=1, inode=1, changed_ns=0, links=1)


def sample(row: ObeyedName) -> str:
    """Return a path that the row is about, in a directory of its own."""
    return f"{OBEYED.index(row)}/{row.pattern.replace('*', 'x1')}"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolContext]:
    """A root that has every file already for `edit_file`, and none where `write_file` is tried: in `new`."""
    root = tmp_path_factory.mktemp("names")
    for row in OBEYED:
        path = root / sample(row)
        path.parent.mkdir(parents=True)
        path.write_text("one", "utf-8")
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield ToolContext(Context(str(root)), Root(descriptor, 0o022))
    os.close(descriptor)


@pytest.fixture(scope="module")
def changes() -> Mapping[str, Change]:
    """What is said of a command that writes them all."""
    found = [Difference(sample(row), None, MADE) for row in OBEYED]
    effects = build_effects(found, {}, (lambda *_: None, lambda *_: None), 0, lambda _: False)
    return {change.path: change for change in effects.changes}


def test_the_rows_are_written_as_the_lookup_folds_them_and_say_everything() -> None:
    for row in ROWS:
        assert all(folded(part) == part != "" for part in row.pattern.split("/")), row
        assert "*" not in row.pattern.rpartition("/")[0], row
        assert row.program, row
        assert row.what, row
        assert row.source, row
    assert len({row.pattern for row in ROWS}) == len(ROWS)


@each_row
@pytest.mark.parametrize("tool", [write_file, edit_file], ids=["write_file", "edit_file"])
def test_a_file_tool_refuses_says_or_notes_what_is_obeyed(context: ToolContext, tool: Tool, row: ObeyedName) -> None:
    path = sample(row)
    arguments = (
        {"path": f"new/{path}", "content": "two"} if tool is write_file else {"path": path, "old": "one", "new": "two"}
    )
    if row.level == "refused":
        assert refusal(tool.run, tool.args(**arguments), context).kind == "permission_denied"
        return
    proposal = tool.run(tool.args(**arguments), context)
    assert isinstance(proposal, Proposal)
    change = proposal.effects.changes[-1]
    assert (change.level, bool(change.protected)) == (row.level, row.level == "asked")


@each_row
def test_a_change_of_a_command_is_marked_with_its_level(changes: Mapping[str, Change], row: ObeyedName) -> None:
    change = changes[sample(row)]
    assert (change.level, bool(change.protected)) == (row.level, row.level != "told")


@each_row
def test_a_name_is_found_however_it_is_written(row: ObeyedName) -> None:
    path = row.pattern.replace("*", "x1")
    parts = path.split("/")
    short = path if "*" in row.pattern else "/".join((*parts[:-1], short_name(parts[-1]).replace("~1", "~4")))
    blank = "/".join(f"{part[:2]}\u200d\ufe0f\u3164{part[2:]}" for part in parts)
    for each in (path, f"a/b/{path}", path.upper(), f"{path}. ", f"{path}::$DATA", blank, f"{path}/x", short):
        found = obeyed(each)
        assert found is not None, each
        assert found.level == row.level, each


ORDINARY = """
README.md notes/idea.md src/main.py src/hooks/use_it.js docs/config HEADER.md .gitignore src/.gitkeep a.b/c~1 profile
my.envrc.md git hooks/readme agents.txt
"""


@pytest.mark.parametrize("path", ORDINARY.split())
def test_an_ordinary_name_is_obeyed_by_nobody(path: str) -> None:
    assert obeyed(path) is None


@pytest.mark.parametrize("path", [".unheard", "a/.unheard/x", ".Unheard.json", ".un\u200dheard"])
def test_a_file_tool_asks_about_a_name_with_a_dot_that_nobody_knows(context: ToolContext, path: str) -> None:
    proposal = write_file.run(write_file.args(path=path, content="x"), context)
    assert isinstance(proposal, Proposal)
    assert proposal.effects.changes[-1].level == "asked"
