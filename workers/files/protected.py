"""Names that no tool writes, because a program outside the room runs what stands in them.

Rule: one table, looked up by every component of a path that is written. Reading them is allowed. A write to
them would turn a confined change into unconfined code at the next `git status`, shell or editor start.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from workers.drafts import is_draft
from workers.paths import shown
from workers.tool import ToolError

_GIT = "git runs the hooks and programs that are named there"
_MERCURIAL = "Mercurial runs the hooks that are named there"
_JUJUTSU = "Jujutsu runs the programs that are named there"
_SUBMODULES = "git fetches and runs what it names"
_DIRENV = "direnv runs it when somebody enters the directory"
_EDITOR = "an editor runs tasks and programs that are named there"
_AGENT = "another agent takes its tools, hooks and permissions from there"
_HOOKS = "git runs the hooks in it"
_SHELL = "a shell runs it when it starts"
_TOOL = "a tool takes programs to run from it when it starts"
_LOGIN = "it decides who may log in"

_GROUPS: Final[tuple[tuple[str, str], ...]] = (
    (_GIT, ".git git~1 .gitconfig"),
    (_MERCURIAL, ".hg .hgrc"),
    (_JUJUTSU, ".jj"),
    (_SUBMODULES, ".gitmodules"),
    (_DIRENV, ".envrc"),
    (
        _EDITOR,
        ".vscode .idea .vs .zed .fleet .devcontainer .devcontainer.json",
    ),
    (_EDITOR, ".vimrc .exrc .nvimrc .nvim.lua .emacs .emacs.d .dir-locals.el"),
    (_AGENT, ".mcp.json .claude .codex .cursor .gemini .windsurf .continue .aider.conf.yml"),
    (_HOOKS, ".husky .githooks"),
    (_SHELL, ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc"),
    (_SHELL, ".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout"),
    (_SHELL, ".xprofile .xinitrc .xsession .pam_environment"),
    (_TOOL, ".ripgreprc .gdbinit .lldbinit .rprofile .irbrc .tmux.conf .screenrc .wgetrc .curlrc"),
    (_TOOL, ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .cargo"),
    (_LOGIN, ".ssh .rhosts"),
)

PROTECTED: Final[Mapping[str, str]] = MappingProxyType(
    {name: reason for reason, names in _GROUPS for name in names.split()}
)
"""Casefolded name -> what could happen. `.gitignore`, `.gitattributes` and `AGENTS.md` are text: not here."""


def refuse_protected(path: str, parts: Iterable[str]) -> None:
    """Check every component of a path that is to be written.

    Raises:
        ToolError: `permission_denied`, with the name and the reason.
    """
    for part in parts:
        reason = reason_of(part)
        if reason is not None:
            raise ToolError(
                "permission_denied",
                f'"{shown(path)}" is protected: tools may read but not write "{shown(part)}", '
                f"because {reason}. Write elsewhere, or ask the user to make this change.",
                path=shown(path),
                protected=shown(part),
            )


def reason_of(name: str) -> str | None:
    """Return what could happen if one component of a path were written; None if nothing could."""
    return "that name marks a write in progress" if is_draft(name) else PROTECTED.get(plain(name))


def plain(name: str) -> str:
    """Return what a file system that folds case and drops trailing dots would take it for."""
    return "".join(filter(str.isprintable, name.partition(":")[0])).rstrip(". ").casefold()
