"""Changes whose meaning no line of a review shows: they are counted, and want a yes of their own. Pure.

Rule: content that cannot be shown, or not all of it; special files; attributes whose values are no text; whatever was
not listed. What is deleted or moved is seen by its name, and so is what git stores: its objects are named by their
content, and mean nothing before a reference, which is a text, leads to them.
"""

import re
from collections.abc import Mapping
from typing import Final

from workers.changes.effects import Change, Effects, NodeState

_SPECIAL: Final[Mapping[str, str]] = {"fifo": "a named pipe", "socket": "a socket", "device": "a device"}
_SET_ID: Final = 0o6000
_GIT_STORE: Final = (
    r"(?:.*/)?\.git/(?:(?:modules|worktrees)/.+/)?"
    r"(?:index|objects/(?:[0-9a-f]{2}/[0-9a-f]{38,62}|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev)))"
)


def unseen(change: Change) -> str:
    """Return why a change cannot be shown in full; "" if it can."""
    before, after = change.before, change.after
    if after is None:
        return ""
    parts = [change.diff_left_out] if change.diff_left_out and not re.fullmatch(_GIT_STORE, change.path) else []
    if after.kind in _SPECIAL and (before is None or before.kind != after.kind):
        parts.append(f"what is behind {_SPECIAL[after.kind]}")
    if hidden := [name for name, _, new in changed_attributes(before, after) if new is None]:
        parts.append(f"the values of {', '.join(hidden)}")
    return "; ".join(parts)


def is_unasked(change: Change, effects: Effects) -> bool:
    """Say whether a change is one that nobody is asked about where it is alone: an ordinary file that git ignores."""
    sides = [each for each in (change.before, change.after) if each is not None]
    plain = all(each.kind in {"file", "dir"} and not each.mode & _SET_ID for each in sides)
    return change.ignored and plain and not (change.protected or change.withheld or effects.traffic)


def count_unseen(effects: Effects) -> int:
    """Return how many changes cannot be shown in full, of those that somebody is asked about."""
    hidden = sum(bool(unseen(each)) and not is_unasked(each, effects) for each in effects.changes)
    return hidden + sum(effects.left_out.values())


def changed_attributes(before: NodeState | None, after: NodeState) -> list[tuple[str, str, str | None]]:
    """Return the attributes that change: name, old and new value in words; None for one that is no text."""
    old = before.attributes if before is not None else {}
    names = sorted({*old, *after.attributes})
    return [
        (name, _value(old.get(name)) or "", _value(after.attributes.get(name)))
        for name in names
        if old.get(name) != after.attributes.get(name)
    ]


def _value(data: bytes | None) -> str | None:
    """Return a value in words, "" where there is none; None where it is no text, or only its digest is known."""
    if data is None:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return f'"{text}"' if text.isprintable() and not text.startswith("sha256:") else None
