"""Effects as clients see them: blocks of text, and differences that an editor can show.

Rule: a block is ended by nothing in it. A difference is handed to the editor where it is known in full: both texts, or
each part of them that changes, with the lines around it; else it is text, as the rehearsal found it. Pure.
"""

import re
from collections.abc import Iterator
from typing import Final

from supervisor.acp import extensions
from supervisor.acp.schema import Content, DiffContent, Text
from supervisor.display import changes, proposed_effects
from supervisor.display.differences import differences
from supervisor.display.escape import name, visible
from supervisor.display.fragments import Line
from supervisor.display.git_words import own_part
from supervisor.display.unseen import is_unasked
from workers.changes.effects import Change, Effects

_FENCE: Final = re.compile("`{3,}")
_UNDO: Final = "After a yes, `strongroom undo` takes it back."
_PART: Final = r"(?m)(?:^@@.*\n)?(?:^[^@].*\n?)+"
"""Lines that change together, and those around them; none of a text begins with an @."""
_NO_END: Final = "\\ No newline at end of file\n"


def effects_shown(effects: Effects, root: str, told: extensions.ProposedEffects) -> list[Content | DiffContent]:
    """Return effects on a root that are still to be decided; `told` is what our own clients are told of them."""
    listed = changes.overview(told)
    listed += [("", _UNDO)] if not told.cannot_undo else []
    return [block(listed, language="text"), *differences_shown(effects, root)]


def differences_shown(effects: Effects, root: str) -> Iterator[Content | DiffContent]:
    """Yield the differences of texts on a root, those of protected paths first."""
    for change in sorted(effects.changes, key=lambda change: not change.protected):
        hidden = is_unasked(change, effects) or (effects.git and own_part(change.path))
        if (change.diff or change.diff_left_out) and not hidden:
            yield from _difference(change, root)


def block(lines: list[Line], language: str = "") -> Content:
    """Return lines as a block that nothing in them can end."""
    return fenced("\n".join(text for _, text in lines), language)


def fenced(text: str, language: str = "") -> Content:
    """Return a text that is visible already as a block that nothing in it can end."""
    fence = max(["``", *_FENCE.findall(text)], key=len) + "`"
    return Content(content=Text(text=f"{fence}{language}\n{text}\n{fence}"))


def _difference(change: Change, root: str) -> Iterator[Content | DiffContent]:
    if not change.diff or change.diff_left_out or change.encoding or name(change.path) != change.path:
        told = extensions.ProposedEffects(changes=[proposed_effects.told(change)])
        yield block(list(differences(told)), language="diff")
        return
    for part in re.findall(_PART, change.diff):
        old, new = map(visible, _sides(part))
        old_text = old if change.before is not None else None
        yield DiffContent(path=f"{root}/{change.path}", old_text=old_text, new_text=new)


def _sides(diff: str) -> tuple[str, str]:
    """Return the lines of both texts that a unified difference holds."""
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in re.findall("[^\n]*\n|[^\n]+$", diff):
        mark, text = line[:1], line[1:]
        if line == _NO_END:
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
        elif mark in " -+":
            last = {" ": (old, new), "-": (old,), "+": (new,)}[mark]
            for side in last:
                side.append(text)
    return "".join(old), "".join(new)
