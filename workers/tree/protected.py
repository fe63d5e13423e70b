"""Names that a change is refused or asked about for, because a program outside the sandbox obeys what stands in them.

Rule: the table of `obeyed_names` says which, and here stands what no table can: what makes any directory a repository,
and what a repository's configuration names. Reading them is allowed. A write to them would turn a confined change into
unconfined code at the next `git status`, shell or editor start. File tools refuse what is obeyed at once, and have a
person asked about the rest; of a command's changes a person is asked about each by name, whatever rules say. Within
`.git` commands are judged more finely, or every commit would ask: what git keeps there as data is free, by a list of
it, and everything else is protected.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from workers.changes.effects import Level
from workers.errors import ToolError
from workers.tree.drafts import is_draft
from workers.tree.git_config import REASON, GitConfigs
from workers.tree.obeyed_names import UNKNOWN, ObeyedName, folded, name_table, rank
from workers.tree.root import shown

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


_MODULES: Final = "modules"
_OBEYED_BELOW: Final = frozenset(["config", "config.worktree", "commondir", "gitdir", "hooks", "info", _MODULES])

_DRAFT: Final = "that name marks a write in progress"


class Protection(NamedTuple):
    """What is known of a path that a change writes: how soon it is obeyed, and what could happen, as a clause."""

    level: Level = ""
    reason: str = ""
    of_parent: bool = False
    """It lies in a directory that programs make as their ordinary work, and is a part of that."""

    @property
    def protected(self) -> str:
        """The reason, where somebody has to be asked."""
        return self.reason if self.level in {"refused", "asked"} else ""


_FREE: Final = Protection()


def refuse_protected(path: str, parts: Sequence[str], configs: GitConfigs | None = None) -> None:
    """Check every component of a path that is to be written, and what `configs` name.

    Raises:
        ToolError: `permission_denied`, with the name and the reason.
    """
    for at, (part, row) in enumerate(zip(parts, name_table().each(parts), strict=True)):
        reason = _DRAFT if is_draft(part) else row.reason if row is not None and row.level == "refused" else None
        if reason is None and at + 1 == len(parts):
            reason = reason_of_place(parts)
        if reason is not None:
            raise _refused(path, part, reason)
    if configs is not None and configs.names(parts):
        raise _refused(path, parts[-1], REASON)


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


def reason_of_place(parts: Sequence[str]) -> str | None:
    """Return what could happen if the file at a path were written, by its own name and its directory's."""
    return reason_of_hook(parts) or _IN_A_REPOSITORY.get(folded(parts[-1]))


def reason_in_repository(name: str) -> str | None:
    """Return what could happen if a file of that name were written into a directory that has a HEAD."""
    return _IN_A_REPOSITORY["config.worktree"] if folded(name) == _CONFIG else None


def reason_of_hook(parts: Sequence[str]) -> str | None:
    """Return what could happen if the file at a path were written, where it is a hook."""
    if len(parts) > 1 and folded(parts[-1]) in _HOOK_NAMES and folded(parts[-2]) == _HOOKS_IN:
        return "git runs it, where this directory is a repository's or is named as one of hooks"
    return None


def protection_in_tool(parts: Sequence[str]) -> Protection:
    """Return what is known of a path that a file tool writes and that is not refused.

    Names with a dot that nobody knows are asked about.
    """
    rows = name_table().each(parts)
    if any(row is None and folded(part).startswith(".") for part, row in zip(parts, rows, strict=True)):
        return Protection("asked", UNKNOWN)
    return _protection(rows)


def protection_of(path: str, there: Callable[[str], bool], configs: GitConfigs | None = None) -> Protection:
    """Return what is known of a change of a command at `path`, relative to the root.

    Args:
        path: what changes.
        there: says of a path whether the change leaves something there.
        configs: of the root.
    """
    parts = path.split("/")
    rows = name_table().each(parts)
    is_data = False
    for at, (part, row) in enumerate(zip(parts, rows, strict=True)):
        if is_draft(part):
            return Protection("refused", _DRAFT)
        if row is None or row.level != "refused":
            continue
        is_data = folded(part) == _GIT_DIRECTORY and _holds_data(parts[at + 1 :])
        if not is_data:
            return _protection(rows)
    if is_data:
        reason = reason_of_hook(parts)
    elif (by_head := reason_in_repository(parts[-1])) and there("/".join((*parts[:-1], "HEAD"))):
        reason = by_head
    else:
        reason = reason_of_place(parts) or (REASON if configs is not None and configs.names(parts) else None)
    if reason or is_data:
        return Protection("refused", reason) if reason else Protection()
    return _protection(rows)


def _protection(rows: Sequence[ObeyedName | None]) -> Protection:
    if not any(rows):
        return _FREE
    row = max(reversed(rows), key=rank)  # of several that say as much the innermost
    if row is None or not row.level:
        return Protection()
    return Protection(row.level, row.reason, any(row is not None and row.makers for row in rows[:-1]))


def _holds_data(below: Sequence[str]) -> bool:
    """Say whether a path below `.git` is data, also where that of a submodule lies in it, whose name may have slashes.

    Where a part of it could be the submodule's name, what follows must be nothing that git obeys.
    """
    if below[:1] != [_MODULES]:
        return bool(below) and _is_data(below[0])
    at = next((at for at, part in enumerate(below) if at > 1 and _is_data(part)), len(below))
    return at < len(below) and not any(folded(part) in _OBEYED_BELOW for part in below[at + 1 :])


def _is_data(name: str) -> bool:
    """Say whether what lies in `.git` under this very name is data; a lock is on its way to the name without."""
    return name.lower().removesuffix(".lock") in _DATA
