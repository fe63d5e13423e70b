"""The tool changed_since: whether anything beneath the root is other than it was at a moment.

Rule: the kernel's word alone counts, the time at which an inode was changed last, which no program can set. What was
made, removed or renamed has changed its directory. No link is followed, and what cannot be looked at is left out.
"""

import os
from typing import Annotated

from msgspec import Meta

from workers.errors import ToolError
from workers.tool import Args, ToolContext, tool
from workers.tree.root import Root


class ChangedSinceArgs(Args, frozen=True):
    """The arguments of changed_since."""

    since: Annotated[float, Meta(description="The moment, in seconds since 1970.")]


@tool(ChangedSinceArgs, effect=False, kind="search", offered=False)
def changed_since(args: ChangedSinceArgs, context: ToolContext) -> str:
    """Say "yes" if anything beneath the root was made, changed, renamed or removed after a moment, else "no"."""
    left = [""]
    while left:
        path = left.pop()
        try:
            below = _directories(context.root, path, args.since)
        except (ToolError, OSError):
            continue
        if below is None:
            return "yes"
        left += below
    return "no"


def _directories(root: Root, path: str, since: float) -> list[str] | None:
    """Return the directories in a directory; None where that, or anything in it, was changed."""
    below = []
    with root.listing(path or ".", links=False) as directory, os.scandir(directory) as found:
        if os.fstat(directory).st_ctime > since:
            return None
        for entry in found:
            if entry.stat(follow_symlinks=False).st_ctime > since:
                return None
            if entry.is_dir(follow_symlinks=False):
                below.append(f"{path}/{entry.name}" if path else entry.name)
    return below
