from pathlib import Path

import pytest

from workers.errors import ToolError
from workers.files.write_file import write_file
from workers.tool import ToolContext
from workers.tree.protected import PROTECTED, refuse_protected


@pytest.mark.parametrize("name", sorted(PROTECTED))
def test_a_protected_name_is_refused_with_its_reason(name: str) -> None:
    for parts in ((name,), ("a", name), (name, "x"), (name.upper(),), (f"{name}. ",), (f"{name}::$DATA",)):
        with pytest.raises(ToolError) as caught:
            refuse_protected("/".join(parts), parts)
        assert caught.value.kind == "permission_denied"
        assert PROTECTED[name] in caught.value.message


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md",
        ".gitignore",
        ".gitattributes",
        ".gitkeep",
        "git/config",
        "config",
        "docs/config",
        "x.git",
        "x.git/description",
        "HEADER",
        "docs/HEAD/x",
        "HEAD.md",
        "hooks/use_it.js",
        "pre-commit",
        ".github/a.yml",
        "...",
        ". .",
        "profile",
    ],
)
def test_an_ordinary_name_is_not_blocked(path: str) -> None:
    refuse_protected(path, path.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".yarn/releases/yarn.cjs",
        ".pnpmfile.cjs",
        "web/.npmrc",
        ".cargo/config.toml",
        "crate/.cargo/config",
        ".emacs.d/init.el",
        ".dir-locals.el",
        ".NPMRC",
        ".pdbrc",
        ".pryrc",
        ".irbrc",
        ".ghci",
        ".ocamlinit",
        ".iex.exs",
        ".dir-locals-2.el",
        ".lvimrc",
        ".exrc",
        ".nvimrc",
        ".nvim.lua",
        ".envrc",
        "mise.toml",
        "mise.local.toml",
        ".mise.toml",
        ".mise.local.toml",
        ".mise/config.toml",
        ".mvn/jvm.config",
        ".mvn/extensions.xml",
        ".bundle/config",
        ".kiro/hooks/x.json",
        ".roo/mcp.json",
        ".opencode/plugin/x.js",
    ],
)
def test_what_a_tool_outside_the_root_would_run_is_not_written(context: ToolContext, root: Path, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        write_file.run(write_file.args(path=path, content="x"), context)
    assert caught.value.kind == "permission_denied"
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "path",
    [
        "HEAD",
        "docs/HEAD",
        "docs/head",
        "docs/HEAD. ",
        "docs/HEAD::$DATA",
        "docs/commondir",
        "docs/config.worktree",
        "mirror/hooks/pre-commit",
    ],
)
def test_what_makes_a_repository_of_any_directory_is_not_written(context: ToolContext, root: Path, path: str) -> None:
    with pytest.raises(ToolError, match=r"because .*git ") as caught:
        write_file.run(write_file.args(path=path, content="x"), context)
    assert caught.value.kind == "permission_denied"
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(("head", "refused"), [("bare/HEAD", True), ("HEAD", False), ("bare/x/HEAD", False)])
def test_a_config_is_not_written_beside_a_head(context: ToolContext, root: Path, head: str, refused: bool) -> None:
    (root / head).parent.mkdir(parents=True, exist_ok=True)
    (root / head).write_text("ref: refs/heads/main")
    if not refused:
        write_file.run(write_file.args(path="bare/config", content="x"), context)
        return
    with pytest.raises(ToolError, match="with a HEAD beside it") as caught:
        write_file.run(write_file.args(path="bare/config", content="x"), context)
    assert caught.value.kind == "permission_denied"
    assert not (root / "bare/config").exists()


def test_every_name_in_the_table_is_as_the_lookup_folds_it() -> None:
    assert all(name == name.casefold().rstrip(". ") for name in PROTECTED)
