"""Every row of the table of names, in the tools that write files and in what is said of a command's changes."""

import os
from collections.abc import Iterator

import pytest

from tests.each_row import each_row
from workers.changes.effects import NodeState
from workers.errors import ToolError
from workers.files.edit_file import edit_file
from workers.files.write_file import write_file
from workers.tool import Proposal, Tool, ToolContext
from workers.tree.obeyed_names import folded, makers_of, name_table, obeyed, rank, short_name
from workers.tree.root import Root
from workers.treediff.comparison import Difference
from workers.treediff.effects_of import build_effects
from workers.treediff.snapshot import Node
from workers.wire.messages import Context

ROWS = list(name_table().rows())
PATHS = [row.pattern.rstrip("/").replace("*", "x1") for row in ROWS]
"""One that each row is about."""
LEVELS = {path: row.level for path, row in zip(PATHS, ROWS, strict=True)}
MADE = Node(NodeState("file", 0o644), device=1, inode=1, changed_ns=0, links=1)
TOOLS = pytest.mark.parametrize("tool", [write_file, edit_file], ids=["write_file", "edit_file"])


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolContext]:
    root = tmp_path_factory.mktemp("names")
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield ToolContext(Context(str(root)), Root(descriptor, 0o022))
    os.close(descriptor)


def level_in(tool: Tool, context: ToolContext, path: str) -> str:
    """Return the level with which a tool proposes a change of a file, or refuses it; and check that it says why."""
    if tool is edit_file:
        place = f"{context.agent.working_directory}/{path}"
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write("one")
    arguments = {"path": path, "content": "two"} if tool is write_file else {"path": path, "old": "one", "new": "two"}
    try:
        proposal = tool.run(tool.args(**arguments), context)
    except ToolError as error:
        return "refused" if error.kind == "permission_denied" else error.kind
    assert isinstance(proposal, Proposal)
    change = proposal.effects.changes[-1]
    assert bool(change.protected) == (change.level == "asked")
    return change.level


@TOOLS
def test_a_file_tool_refuses_or_marks_what_is_obeyed(context: ToolContext, tool: Tool) -> None:
    found = {path: level_in(tool, context, f"{tool.name}/{number}/{path}") for number, path in enumerate(PATHS)}
    assert found == LEVELS


def test_a_change_of_a_command_is_marked_with_its_level() -> None:
    found = [Difference(f"a/{path}", None, MADE) for path in PATHS]
    effects = build_effects(found, {}, (lambda *_: None, lambda *_: None), 0, lambda _: False)
    assert {each.path.removeprefix("a/"): each.level for each in effects.changes} == LEVELS
    assert all(bool(each.protected) is (each.level in {"refused", "asked"}) for each in effects.changes)


def test_a_name_is_found_however_it_is_written() -> None:
    for row, path in zip(ROWS, PATHS, strict=True):
        parts = path.split("/")
        short = path if "*" in row.pattern else "/".join((*parts[:-1], short_name(parts[-1]).replace("~1", "~4")))
        blank = "/".join(f"{part[:2]}\u200d\ufe0f\u3164{part[2:]}" for part in parts)
        for each in (path, f"a/b/{path}", path.upper(), f"{path}. ", f"{path}::$DATA", blank, short):
            found = obeyed(each)
            assert rank(found) == rank(row) or (each == short and rank(found) > rank(row)), each
        beneath = row.level == "refused" or row.pattern[0] == "." or row.pattern[-1] == "/"
        assert (obeyed(f"{path}/x") is not None) is (beneath and row.level != ""), path


def test_the_rows_are_written_as_the_lookup_folds_them_and_say_everything() -> None:
    for row in ROWS:
        assert all(folded(part) == part != "" for part in row.pattern.rstrip("/").split("/")), row
        assert row.pattern.rpartition("/")[2].count("*") == row.pattern.count("*") <= 1, row
        assert all((row.program, row.what, row.source)), row
    assert len({row.pattern.rstrip("/") for row in ROWS}) == len(ROWS)
    assert sum(row.level != "" for row in ROWS) >= 300


ORDINARY = """
README.md notes/idea.md src/main.py src/hooks/use_it.js docs/config HEADER.md .gitignore src/.gitkeep a.b/c~1 profile
my.envrc.md git hooks/readme agents.txt models/user.js notes/memory.md build/x.o src/workspace/a.c .env.example
src/json.py tests/__init__.py test/__init__.py main.py
.my_cache/x .pytest_cache/v .foo.swp package.json.md
"""


@each_row("path", ORDINARY.split())
def test_an_ordinary_name_is_obeyed_by_nobody(context: ToolContext, path: str) -> None:
    assert obeyed(path) is None
    assert level_in(write_file, context, path) == ""


@pytest.mark.parametrize(
    "path", ["GITHUB~1/workflows/x.yml", ".g\u0131t/config", ".v\u017fcode/tasks.json", "ma\u212aefile"]
)
def test_a_name_is_found_by_its_short_names_and_through_letters_that_fold(path: str) -> None:
    assert obeyed(path) is not None


@pytest.mark.parametrize("path", ["json.py", "Random.py", "logging/__init__.py", "json.so"])
def test_a_module_of_the_root_that_python_would_take_for_its_own_is_asked_about(path: str) -> None:
    row = obeyed(path)
    assert row is not None
    assert row.level == "asked"


@pytest.mark.parametrize("path", [".unheard", "a/.unheard/x", ".Unheard.json", ".un\u200dheard"])
def test_a_file_tool_asks_about_a_name_with_a_dot_that_nobody_knows(context: ToolContext, path: str) -> None:
    assert level_in(write_file, context, path) == "asked"


@pytest.mark.parametrize(
    "name", ["sitecustomize.py", "usercustomize.py", "build/sitecustomize.py", "a/usercustomize/b"]
)
def test_what_python_runs_at_its_start_is_nobodys_work_outside_of_an_environment(name: str) -> None:
    assert obeyed(name)
    assert not makers_of(name)
    assert "python" in makers_of(f".venv/lib/{name}")
