"""Protected paths in the effects of commands: a person is asked about each by name, whatever the rules say.

Rule: they are those that the file tools refuse, and within `.git` commands are judged more finely, or every commit
would ask: what git keeps there as data is free, by a list of it, and everything else is protected.
"""

from collections.abc import Callable
from typing import Final

from workers.tree.protected import beside_a_head, plain, reason_of, reason_of_hook, reason_of_place

_GIT: Final = ".git"
_KEPT: Final = (
    "objects refs logs index head orig_head fetch_head merge_head merge_msg merge_mode squash_msg cherry_pick_head "
    "revert_head auto_merge commit_editmsg tag_editmsg packed-refs shallow description gc.log"
)
_DATA: Final = frozenset(_KEPT.split())
"""What git reads in its directory without running anything, in lower case."""


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
        is_data = plain(part) == _GIT and at + 1 < len(parts) and _is_data(parts[at + 1])
        if not is_data:
            return reason
    if is_data:
        return reason_of_hook(parts) or ""
    beside = beside_a_head(parts[-1])
    if beside and there("/".join((*parts[:-1], "HEAD"))):
        return beside
    return reason_of_place(parts) or ""


def _is_data(name: str) -> bool:
    """Say whether what lies in `.git` under this very name is data; a lock is on its way to the name without."""
    return name.lower().removesuffix(".lock") in _DATA
