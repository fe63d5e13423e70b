"""Outcomes of a commit as a tool answers with them.

Rule: a failure says what is in the root now, and what to do instead.
"""

import errno
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from workers.changes.effects import CommitFailed, CommitOutcome, Committed, Conflicted
from workers.errors import ToolError
from workers.tree.root import shown
from workers.wire.messages import ErrorKind

_NAMED: Final = 10
"""Paths that a message names."""

_KINDS: Final[Mapping[int, ErrorKind]] = MappingProxyType(
    {
        errno.ENOSPC: "disk_full",
        errno.EDQUOT: "disk_full",
        errno.EACCES: "permission_denied",
        errno.EPERM: "permission_denied",
        errno.EROFS: "permission_denied",
    }
)


def committed(outcome: CommitOutcome, again: str) -> str:
    """Return what is to be remarked on a commit that took place; empty if nothing is.

    Args:
        outcome: of the commit.
        again: What to do where it did not, a sentence.

    Raises:
        ToolError: it did not take place: `conflict`, or what the system refused.
    """
    match outcome:
        case Committed(remark=remark):
            return remark
        case Conflicted(conflicts=conflicts, more=more):
            told = [f'"{shown(each.path)}": {each.why}' for each in conflicts[:_NAMED]]
            rest = more + len(conflicts) - len(told)
            others = f"; and {rest} more" if rest else ""
            raise ToolError(
                "conflict",
                f"Nothing was changed, because the root is no longer what it was: {'; '.join(told)}{others}. {again}",
                path=shown(conflicts[0].path),
            )
        case CommitFailed(message=message, stands=stands, errno=code):
            now = f" This is in the root now: {'; '.join(stands[:_NAMED])}." if stands else ""
            raise ToolError(_KINDS.get(code, "internal"), f"{message}{now} Tell the person.")
