"""Which paths a person is asked about by name, whatever the rules say.

Rule: the names are those that the file tools refuse, and the hooks of a repository, whatever its directory is called:
git takes any directory with a HEAD, objects and refs for one. Only within `.git` are commands judged more finely, or
every commit would ask: what git keeps there as data is free, by a list of it, and everything else is protected.
"""

from typing import Final

from workers.files.protected import plain, reason_of

_GIT: Final = ".git"
_KEPT: Final = (
    "objects refs logs index head orig_head fetch_head merge_head merge_msg merge_mode squash_msg cherry_pick_head "
    "revert_head auto_merge commit_editmsg tag_editmsg packed-refs shallow description gc.log"
)
_DATA: Final = frozenset(_KEPT.split())
"""What git reads in its directory without running anything, in lower case."""


_HOOKS_IN: Final = "hooks"
_NAMES: Final = (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg "
    "post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive "
    "post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate "
    "fsmonitor-watchman p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change"
)
_HOOKS: Final = frozenset(_NAMES.split())
"""What git runs in a directory of hooks (githooks(5))."""


def protection_of(path: str) -> str:
    """Return why a person is asked about a change at `path`, relative to the root; empty if nobody need be."""
    parts = path.split("/")
    for at, part in enumerate(parts):
        reason = reason_of(part)
        if reason is None or (plain(part) == _GIT and at + 1 < len(parts) and _is_data(parts[at + 1])):
            continue
        return reason
    hook = len(parts) > 1 and plain(parts[-2]) == _HOOKS_IN and plain(parts[-1]) in _HOOKS
    return "git runs it, where this directory is a repository's or is named as one of hooks" if hook else ""


def _is_data(name: str) -> bool:
    """Say whether what lies in `.git` under this very name is data; a lock is on its way to the name without."""
    return name.lower().removesuffix(".lock") in _DATA
