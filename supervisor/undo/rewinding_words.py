"""A rewinding in words, line by line: what it would come to, or has."""

from collections.abc import Sequence
from typing import Final

from supervisor.acp.extensions import RewindResult
from supervisor.display.escape import name, visible
from supervisor.undo.undo_lines import change_lines

_NAMED: Final = 20
"""Names that are told one by one."""


def rewinding_lines(result: RewindResult, *, done: bool) -> list[str]:
    """Return what a rewinding comes to; with `done`, it has taken place, unless it is not `ok`."""
    if not result.ok:
        return [f"not rewound: {result.kind}: {visible(result.message)}"]
    where = f"the end of turn {result.turn}" if result.turn else "the beginning"
    lines = [f"{'rewound' if done else 'rewinds'} to {where}"]
    lines += [f"    turns that stand no more: {_turns(result.turns)}"] if result.turns else []
    lines += [f"    turns that stand again: {_turns(result.again)}"] if result.again else []
    lines += [f"    {line}" for line in change_lines(result.changes, result.more, done=done)]
    lines += [] if result.changes else ["    no file changes"]
    lines += [f"    left as it is: {name(each.path)}, because {visible(each.why)}" for each in result.left[:_NAMED]]
    more = len(result.left) - _NAMED + result.more_left
    lines += [f"    and {more} more names are left as they are"] if more > 0 else []
    lines += [f"    stays: {name(each.title)}  ({name(each.call)}): {visible(each.why)}" for each in result.remaining]
    return lines


def _turns(turns: Sequence[int]) -> str:
    """Return numbers of turns, a stretch of them as its ends."""
    parts = list[list[int]]()
    for turn in turns:
        if parts and parts[-1][-1] == turn - 1:
            parts[-1].append(turn)
        else:
            parts.append([turn])
    return ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 1 else f"{each[0]}" for each in parts)
