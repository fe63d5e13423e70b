"""Effects of a call as clients are told them: each changed name with what became of it. Pure.

Rule: the names and words are as they are; whoever shows them makes them safe (`supervisor.display.changes`).
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from supervisor.acp import extensions
from supervisor.display.escape import name
from supervisor.display.git_words import git_words
from supervisor.display.package_folders import count_packages, folders
from supervisor.display.unseen import changed_attributes, count_unseen, is_unasked, unseen
from workers.changes.effects import Change, Effects, FoldedNames, NodeState, Traffic

ONLY: Final[Mapping[str, str]] = MappingProxyType(
    {"mode": "permissions only", "attributes": "attributes only", "times": "time stamps only"}
)
"""Words for kinds of change whose name is no verb."""
_KINDS: Final[Mapping[str, str]] = MappingProxyType({"dir": "directory", "fifo": "named pipe"})
_UNITS: Final = ("kB", "MB", "GB", "TB")
_STEP: Final = 1000
_TENS: Final = 10
_ORDINARY: Final = 0o664
_ORDINARY_DIRECTORY: Final = 0o775
"""Bits that a new file, or directory, may have without a word."""


def presented(effects: Effects, cannot_undo: str = "", *, lacks: bool = False) -> extensions.ProposedEffects:
    """Return effects as clients are told them, protected paths first; with `lacks`, and what was refused."""
    changes = sorted(effects.changes, key=lambda change: not change.protected)
    asked = (each for each in effects.changes if not is_unasked(each, effects))
    return extensions.ProposedEffects(
        changes=[told(each, unasked=is_unasked(each, effects)) for each in changes],
        totals=dict(effects.totals.items()),
        left_out=dict(effects.left_out.items()),
        refused=[
            extensions.BlockedAttempt(kind=each.kind, what=each.what, count=each.count) for each in effects.refused
        ],
        refused_left_out=effects.refused_left_out,
        lacked=", ".join(effects.lacked) if lacks else "",
        cannot_undo=cannot_undo,
        traffic=traffic(effects.traffic),
        unseen=count_unseen(effects),
        git=git_words(effects.git),
        rehearsed_in=effects.rehearsed_in,
        packages=_packages(folders(asked), effects.folded),
    )


def _packages(listed: Mapping[str, Sequence[Change]], folded: Iterable[FoldedNames]) -> dict[str, str]:
    """Return how much changes in each directory of packages; of what is folded, the number is known."""
    more = {each.path: each for each in folded}
    found = {}
    for folder in sorted({*listed, *more}):
        changes, rest = listed.get(folder, ()), more.get(folder)
        packages, hidden = count_packages(changes), sum(rest.totals.values()) if rest is not None else 0
        new = sum(each.after.size for each in changes if each.after is not None and each.what != "deleted")
        many = f"{packages}{' or more' * bool(hidden)} package{'s' * (packages > 1)}, " if packages else ""
        obeyed = (
            f", also one that is protected, because {rest.protected}" if rest is not None and rest.protected else ""
        )
        unlisted = f", {hidden} of them not listed{obeyed}" if hidden else ""
        size_of_all = new + (rest.size if rest is not None else 0)
        found[folder] = f"{many}{len(changes) + hidden} names, {_bytes(size_of_all)}{unlisted}"
    return found


def traffic(told: Iterable[Traffic]) -> str:
    """Return what a command has sent where, and what came back, as a clause; "" where it had no connections."""
    return ", ".join(
        f"to {name(each.place)} {_bytes(each.up)} up, {_bytes(each.down)} down{' (cut)' * each.cut}" for each in told
    )


def _bytes(count: int) -> str:
    return size(count) if count else "0 B"


def told(change: Change, *, unasked: bool = False) -> extensions.ChangedName:
    """Return one change as clients are told it; `unasked` where it is merely counted."""
    state = change.after or change.before
    return extensions.ChangedName(
        path=change.path,
        what=change.what,
        kind=state.kind if state else "file",
        about=_about(change),
        protected=change.protected,
        diff=change.diff,
        diff_left_out=change.diff_left_out,
        encoding=change.encoding,
        unseen="" if unasked else unseen(change),
        tracked=change.tracked,
        ignored=unasked,
    )


def _about(change: Change) -> str:
    before, after = change.before, change.after
    parts = [_became(change.what, before, after)]
    parts += [_attributes(before, after)] if after is not None else []
    parts += [f"moved from {change.moved_from}"] if change.moved_from else []
    parts += [f"the same file as {change.same_as}"] if change.same_as else []
    parts += ["its other names keep the old content"] if change.linked and change.what == "modified" else []
    parts += [f"without the bits {change.withheld:04o}, which no commit sets"] if change.withheld else []
    parts += ["somebody else has changed it meanwhile, so it cannot be applied"] if change.meanwhile else []
    return ", ".join(part for part in parts if part)


def _became(what: str, before: NodeState | None, after: NodeState | None) -> str:
    if before is None or after is None:
        return _is(after or before)
    match what:
        case "mode":
            return _modes(before, after)
        case "attributes":
            return ""
        case "times":
            return ONLY[what]
        case "modified" if after.kind == "file":
            modes = f", {_modes(before, after)}" if before.mode != after.mode else ""
            return f"{size(before.size)} -> {size(after.size)}{modes}"
        case _:
            return f"{_is(before)} -> {_is(after)}"


def _attributes(before: NodeState | None, after: NodeState) -> str:
    others = [
        f"{each} {f'{old} -> ' if old else ''}{'gone' if new == '' else new or 'no text'}"
        for each, old, new in changed_attributes(before, after)
    ]
    return f"attributes {', '.join(others)}" if others else ""


def _is(state: NodeState | None) -> str:
    """Return what a name is, or was."""
    if state is None:
        return ""
    match state.kind:
        case "link":
            return f"link to {state.target}"
        case "file":
            special = f", mode {state.mode:04o}" if state.mode & ~_ORDINARY else ""
            return f"{size(state.size)}{special}"
        case kind:
            special = f", mode {state.mode:04o}" if kind == "dir" and state.mode & ~_ORDINARY_DIRECTORY else ""
            return f"{_KINDS.get(kind, kind)}{special}"


def _modes(before: NodeState, after: NodeState) -> str:
    return f"mode {before.mode:04o} -> {after.mode:04o}"


def size(count: int) -> str:
    """Return a number of bytes in a few characters."""
    if not count:
        return "empty"
    if count < _STEP:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= _STEP
        if value < _STEP or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}" if value < _TENS else f"{value:.0f} {unit}"
