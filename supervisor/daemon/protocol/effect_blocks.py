"""Effects as clients see them: blocks of text, and differences that an editor can show.

Rule: a block is ended by nothing in it. A difference is handed to the editor only where both texts are at hand in full;
else it is text, as the rehearsal found it. Pure.
"""

import re
from typing import Final

import msgspec

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
_NO_END: Final = "\\ No newline at end of file\n"


def effects_shown(
    effects: Effects, root: str, limit: int | None = None, told: extensions.ProposedEffects | None = None
) -> list[Content | DiffContent]:
    """Return effects on a root; at most `limit` characters of differences, None for all of them.

    `told` is what our own clients are told of them, where that is at hand.
    """
    known = told or proposed_effects.presented(effects)
    listed = changes.overview(known if limit is None else msgspec.structs.replace(known, unseen=0))  # facts hold less
    if limit is None and not (told and told.cannot_undo):  # it is still to be decided
        listed.append(("", _UNDO))
    shown: list[Content | DiffContent] = [block(listed, language="text")]
    for change in sorted(effects.changes, key=lambda change: not change.protected):
        if not (change.diff or change.diff_left_out) or (
            is_unasked(change, effects) or (effects.git and own_part(change.path))
        ):
            continue
        if limit is not None:
            limit -= len(change.diff)
            if limit < 0:
                shown.append(block([("", "More differences are not shown here; `strongroom why` has them.")]))
                break
        shown.append(_difference(change, root))
    return shown


def block(lines: list[Line], language: str = "") -> Content:
    """Return lines as a block that nothing in them can end."""
    return fenced("\n".join(text for _, text in lines), language)


def fenced(text: str, language: str = "") -> Content:
    """Return a text that is visible already as a block that nothing in it can end."""
    fence = max(["``", *_FENCE.findall(text)], key=len) + "`"
    return Content(content=Text(text=f"{fence}{language}\n{text}\n{fence}"))


def _difference(change: Change, root: str) -> Content | DiffContent:
    texts = _texts(change)
    if texts is not None and name(change.path) == change.path:
        old, new = (None if text is None else visible(text) for text in texts)
        return DiffContent(path=f"{root}/{change.path}", old_text=old, new_text=new or "")
    told = extensions.ProposedEffects(changes=[proposed_effects.told(change)])
    return block(list(differences(told)), language="diff")


def _texts(change: Change) -> tuple[str | None, str | None] | None:
    """Return both texts, None for one that is not there; None where the difference does not hold all of them."""
    if not change.diff or change.diff_left_out:
        return None
    old, new = _sides(change.diff)
    for text, state in ((old, change.before), (new, change.after)):
        if len(text.encode("utf-8", "surrogatepass")) != (state.size if state is not None else 0):
            return None
    return (old if change.before is not None else None, new if change.after is not None else None)


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
