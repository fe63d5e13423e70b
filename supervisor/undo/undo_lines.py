"""Undone changes in words, line by line."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from supervisor.acp.extensions import Restored, Undone
from supervisor.display.escape import name, visible
from supervisor.display.git_words import own_part

_NAMED: Final = 4
"""Names in one line."""
_OTHER: Final = ("restores", "restored")
_VERBS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "added": ("brings back", "brought back"),
        "deleted": ("removes", "removed"),
        "modified": _OTHER,
        "replaced": _OTHER,
        "mode": ("resets the mode of", "the mode reset of"),
        "attributes": ("resets attributes of", "attributes reset of"),
        "times": ("resets the time of", "the time reset of"),
    }
)


def change_lines(changes: Sequence[Restored], more: int, *, done: bool) -> list[str]:
    """Return changes as lines, a line a kind, with the first names of each."""
    lines = []
    for verb in dict.fromkeys(verbs[done] for verbs in _VERBS.values()):
        found = [each.path for each in changes if _VERBS.get(each.what, _OTHER)[done] == verb]
        paths = [name(path) for path in found if not own_part(path)]
        rest, own = len(paths) - _NAMED, len(found) - len(paths)
        words = [", ".join(paths[:_NAMED]) + (f" and {rest} more" if rest > 0 and not more else "")] if paths else []
        words += [f"{own} name{'s' * (own > 1)} that git keeps for itself"] if own else []
        lines += [f"{verb} {'; '.join(words)}"] if words else []
    return [*lines, f"{len(changes) + more} names in all"] if more else lines


def undo_lines(step: Undone, command: str = "strongroom undo") -> Sequence[str]:
    """Return what became of one call, line by line; `command` is what a person types to undo."""
    about = name(step.title or step.call)
    if not step.ok:
        return [f"not undone: {about}  ({name(step.call)})", f"    {step.kind}: {visible(step.message)}"]
    redo = f"; `{command} {name(step.undo)}` brings it back" if step.changes else ""
    words = [*change_lines(step.changes, step.more, done=True), visible(step.message)]
    return [f"undone: {about}  ({name(step.call)}, by {name(step.undo)}{redo})", *(f"    {word}" for word in words)]
