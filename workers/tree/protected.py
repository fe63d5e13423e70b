"""Names that no tool writes, because a program outside the sandbox runs what stands in them.

Rule: one table, looked up by every component of a path that is written, and one of files that only count where they
lie: what makes any directory a repository. Reading them is allowed. A write to them would turn a confined change into
unconfined code at the next `git status`, shell or editor start. File tools refuse them; of a command's changes a person
is asked about each by name, whatever the rules say. Within `.git` commands are judged more finely, or every commit
would ask: what git keeps there as data is free, by a list of it, and everything else is protected.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from workers.errors import ToolError
from workers.tree.drafts import is_draft
from workers.tree.root import shown

_GIT = "git runs the hooks and programs that are named there"
_MERCURIAL = "Mercurial runs the hooks that are named there"
_JUJUTSU = "Jujutsu runs the programs that are named there"
_SUBMODULES = "git fetches and runs what it names"
_DIRENV = "direnv runs it when somebody enters the directory"
_MISE = "mise takes programs to run from it when somebody enters the directory"
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
    (_MISE, "mise.toml mise.local.toml .mise.toml .mise.local.toml .mise"),
    (_EDITOR, ".vscode .idea .vs .zed .fleet .devcontainer .devcontainer.json"),
    (_EDITOR, ".vimrc .exrc .lvimrc .nvimrc .nvim.lua .emacs .emacs.d .dir-locals.el .dir-locals-2.el"),
    (_AGENT, ".mcp.json .claude .codex .cursor .gemini .windsurf .continue .kiro .roo .opencode .aider.conf.yml"),
    (_HOOKS, ".husky .githooks"),
    (_SHELL, ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc"),
    (_SHELL, ".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout"),
    (_SHELL, ".xprofile .xinitrc .xsession .pam_environment"),
    (_TOOL, ".ripgreprc .gdbinit .lldbinit .rprofile .irbrc .tmux.conf .screenrc .wgetrc .curlrc"),
    (_TOOL, ".pdbrc .pryrc .ghci .ocamlinit .iex.exs"),
    (_TOOL, ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .cargo .mvn .bundle"),
    (_LOGIN, ".ssh .rhosts"),
)

PROTECTED: Final[Mapping[str, str]] = MappingProxyType(
    {name: reason for reason, names in _GROUPS for name in names.split()}
)
"""Casefolded name -> what could happen. `.gitignore`, `.gitattributes` and `AGENTS.md` are text: not here."""

_IN_A_REPOSITORY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "head": "with objects and refs beside it, the directory is a repository, and git runs what its config names",
        "commondir": "with a HEAD beside it, git runs the programs that are named in the config where it leads",
        "config.worktree": "with a HEAD beside it, git runs the programs that are named there",
    }
)
"""Casefolded name of a file -> what could happen: git takes any directory that holds the right files for a repository,
whatever it is called (gitrepository-layout(5))."""
_CONFIG: Final = "config"
"""Another of them, but common elsewhere: it counts only where there is a HEAD (`reason_in_repository`)."""
_HOOKS_IN: Final = "hooks"
_NAMES: Final = (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg "
    "post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive "
    "post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate "
    "fsmonitor-watchman p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change"
)
_HOOK_NAMES: Final = frozenset(_NAMES.split())
"""What git runs in a directory of hooks (githooks(5))."""


_GIT_DIRECTORY: Final = ".git"
_GIT_DATA: Final = (
    "objects refs logs index head orig_head fetch_head merge_head merge_msg merge_mode squash_msg cherry_pick_head "
    "revert_head auto_merge commit_editmsg tag_editmsg packed-refs shallow description gc.log"
)
_DATA: Final = frozenset(_GIT_DATA.split())
"""What git reads in its directory without running anything, in lower case."""


def refuse_protected(path: str, parts: Sequence[str]) -> None:
    """Check every component of a path that is to be written.

    Raises:
        ToolError: `permission_denied`, with the name and the reason.
    """
    for at, part in enumerate(parts, 1):
        reason = reason_of(part) or (reason_of_place(parts) if at == len(parts) else None)
        if reason is not None:
            raise _refused(path, part, reason)


def refuse_in_repository(path: str, name: str) -> None:
    """Check the name of a file that is to be written into a directory with a HEAD; raises like `refuse_protected`."""
    if reason := reason_in_repository(name):
        raise _refused(path, name, reason)


def _refused(path: str, part: str, reason: str) -> ToolError:
    return ToolError(
        "permission_denied",
        f'"{shown(path)}" is protected: tools may read but not write "{shown(part)}", '
        f"because {reason}. Write elsewhere, or ask the user to make this change.",
        path=shown(path),
        protected=shown(part),
    )


def reason_of(name: str) -> str | None:
    """Return what could happen if one component of a path were written; None if nothing could."""
    return "that name marks a write in progress" if is_draft(name) else PROTECTED.get(plain(name))


def reason_of_place(parts: Sequence[str]) -> str | None:
    """Return what could happen if the file at a path were written, by its own name and its directory's."""
    return reason_of_hook(parts) or _IN_A_REPOSITORY.get(plain(parts[-1]))


def reason_in_repository(name: str) -> str | None:
    """Return what could happen if a file of that name were written into a directory that has a HEAD."""
    return _IN_A_REPOSITORY["config.worktree"] if plain(name) == _CONFIG else None


def reason_of_hook(parts: Sequence[str]) -> str | None:
    """Return what could happen if the file at a path were written, where it is a hook."""
    if len(parts) > 1 and plain(parts[-1]) in _HOOK_NAMES and plain(parts[-2]) == _HOOKS_IN:
        return "git runs it, where this directory is a repository's or is named as one of hooks"
    return None


def plain(name: str) -> str:
    """Return what a file system that folds case and drops trailing dots would take it for."""
    seen = name.partition(":")[0]
    return (seen if seen.isprintable() else "".join(filter(str.isprintable, seen))).rstrip(". ").casefold()


def protection_of(path: str, there: Callable[[str], bool]) -> str:
    """Return why a person is asked about a change at `path`, relative to the root; empty if nobody need be.

    `there` says of a path whether the change leaves something there.
    """
    parts = path.split("/")
    is_data = False
    for at, part in enumerate(parts):
        reason = reason_of(part)
        if reason is None:
            continue
        is_data = plain(part) == _GIT_DIRECTORY and at + 1 < len(parts) and _is_data(parts[at + 1])
        if not is_data:
            return reason
    if is_data:
        return reason_of_hook(parts) or ""
    by_head = reason_in_repository(parts[-1])
    if by_head and there("/".join((*parts[:-1], "HEAD"))):
        return by_head
    return reason_of_place(parts) or ""


def _is_data(name: str) -> bool:
    """Say whether what lies in `.git` under this very name is data; a lock is on its way to the name without."""
    return name.lower().removesuffix(".lock") in _DATA
