from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.each_row import each_row
from tests.tool_calls import refused, told
from workers.files.write_file import write_file
from workers.tool import ToolContext
from workers.tree.protected import protection_of, refuse_protected


def write(context: ToolContext, path: str) -> None:
    told(write_file, context, path=path, content="x")


ORDINARY = """
AGENTS.md .gitignore .gitattributes .gitkeep git/config config docs/config x.git x.git/description HEADER docs/HEAD/x
HEAD.md hooks/use_it.js pre-commit .github/a.yml ... profile
"""


@each_row("path", [*ORDINARY.split(), ". ."])
def test_an_ordinary_name_is_not_blocked(path: str) -> None:
    refuse_protected(path, path.split("/"))


RUN_OUTSIDE = """
.npmrc .yarnrc .yarnrc.yml .yarn/releases/yarn.cjs .pnpmfile.cjs web/.npmrc .cargo/config.toml crate/.cargo/config
.emacs.d/init.el .dir-locals.el .NPMRC .pdbrc .pryrc .irbrc .ghci .ocamlinit .iex.exs .dir-locals-2.el .lvimrc .exrc
.nvimrc .nvim.lua .envrc mise.toml mise.local.toml .mise.toml .mise.local.toml .mise/config.toml .mvn/jvm.config
.mvn/extensions.xml .bundle/config .kiro/hooks/x.json .roo/mcp.json .opencode/plugin/x.js
"""


@pytest.mark.parametrize("path", RUN_OUTSIDE.split())
def test_a_file_that_a_tool_outside_the_root_would_run_is_not_written(
    context: ToolContext, root: Path, path: str
) -> None:
    with refused("permission_denied"):
        write(context, path)
    assert list(root.iterdir()) == []


OF_A_REPOSITORY = """
HEAD docs/HEAD docs/head docs/HEAD::$DATA docs/commondir docs/config.worktree mirror/hooks/pre-commit
"""


@pytest.mark.parametrize("path", [*OF_A_REPOSITORY.split(), "docs/HEAD. "])
def test_a_file_that_makes_a_repository_of_its_directory_is_not_written(
    context: ToolContext, root: Path, path: str
) -> None:
    with refused("permission_denied", "because ", "git "):
        write(context, path)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(("head", "stands"), [("bare/HEAD", False), ("HEAD", True), ("bare/x/HEAD", True)])
def test_a_config_is_not_written_beside_a_head(context: ToolContext, root: Path, head: str, stands: bool) -> None:
    (root / head).parent.mkdir(parents=True, exist_ok=True)
    (root / head).write_text("ref: refs/heads/main")
    with nullcontext() if stands else refused("permission_denied", "with a HEAD beside it"):
        write(context, "bare/config")
    assert (root / "bare/config").exists() is stands


CONFIG = """
[core]
\thooksPath = "my hooks"
\tfsmonitor = watch
[filter "x"] clean = sh -c './t/clean.sh %f'
[alias]
\tx = !f() { ./bin2/al.sh\\
; }; f
[include]
\tpath = ../inc.conf
[diff "d"]
\tcommand = ROOT/tools/d.sh
[remote "origin"]
\turl = ./other
[branch "main"]
\tremote = .
\tmerge = refs/heads/main
[core]
\tpager = less -R
"""


@pytest.mark.parametrize(
    ("path", "stands"),
    [
        *((path, False) for path in ("my hooks/pre-commit", "MY HOOKS/x", "watch", "t/clean.sh", "bin2/al.sh/x")),
        *((path, False) for path in ("inc.conf", "tools/d.sh", "mod/h2/x")),
        *((path, True) for path in ("my/x", "t/x", "other", "refs/heads/main", "less", "h2/x", "/".join(["d"] * 1500))),
    ],
)
def test_what_the_configuration_of_a_repository_names_is_not_written(
    context: ToolContext, root: Path, path: str, stands: bool
) -> None:
    (root / ".git/modules/mod").mkdir(parents=True)
    (root / ".git/config").write_text(CONFIG.replace("ROOT", str(root)))
    (root / "mod").mkdir()
    (root / "mod/.git").write_text("gitdir: ../.git/modules/mod\n")
    (root / ".git/modules/mod/config").write_text("[core]\n\thooksPath = h2\n")
    with nullcontext() if stands else refused("permission_denied", "the configuration of its repository names it"):
        write_file.run(write_file.args(path=path, content="x"), context)


@pytest.mark.parametrize(
    ("config", "stands"),
    [
        (f"[x]\ny = {'/a' * 2000} /{'b' * 5000}\n[{'a' * 250_000}", True),
        ("".join(f"[x]\ny = a/{number} /b/c/d" for number in range(3000)), False),
    ],
    ids=["what takes long to read", "more than is kept"],
)
def test_a_hostile_configuration_of_a_repository_names_what_it_can_or_all(
    context: ToolContext, root: Path, config: str, stands: bool
) -> None:
    (root / "in/.git").mkdir(parents=True)
    (root / "in/.git/config").write_text(config)
    write(context, "new.txt")
    with nullcontext() if stands else refused("permission_denied", "the configuration of its repository names it"):
        write(context, "in/new.txt")


SUBMODULE: dict[str, bool] = {
    "index": False,
    "objects/46/93ad": False,
    "logs/refs/heads/main": False,
    "nested/name/refs/heads/main": False,
    "config": True,
    "hooks/pre-commit": True,
    "index/config": True,
    "objects/hooks/pre-commit": True,
    "modules/other/config": True,
}
"""Path in git's directory of a submodule -> whether it is obeyed."""


@each_row("path", SUBMODULE)
def test_of_a_submodule_git_keeps_the_same_data(path: str) -> None:
    found = protection_of(f".git/modules/lib/{path}", lambda _: True)
    assert bool(found.protected) is SUBMODULE[path]
    assert protection_of(".git/modules/index", lambda _: True).protected
