"""Modes of a session: which changes a person is asked about, whatever tool makes them.

Rule: pure, and a table. What rules say holds in every mode, and what the profile asks about is asked about in each. In
a source tree the mode `edits` lets pass what stays beneath the root and can be taken back; nothing passes in `plan`,
whose workers commit nothing (`supervisor.pool.pools.PLAN`).
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

from supervisor.rules.change_kinds import kinds_of
from supervisor.rules.judge_effects import Verdict, count_changed, essential_changes, protected_changes, summary
from supervisor.rules.rule import ChangeKind, quoted
from workers.changes.effects import Change, Effects

Mode = Literal["ask", "edits", "plan"]

MODES: Final[Mapping[Mode, str]] = MappingProxyType(
    {
        "ask": "Every change is asked about, by whatever tool.",
        "edits": "Changes beneath the root are made, and the rest is asked about, as the profile says.",
        "plan": "Nothing is changed: edits and commands are rehearsed, and what they would change is shown.",
    }
)
PLANNED: Final = "the session is in plan mode, in which nothing is changed"

_ALWAYS_ASKED: Final[Mapping[ChangeKind, str]] = MappingProxyType(
    {"link-outside": "links that lead outside", "special": "special files", "setuid": "set-user-ID bits"}
)
_GONE: Final = frozenset({"deleted", "replaced"})
_TOLD: Final = 6
_WIDTH: Final = 100


def judge_by_mode(mode: Mode, verdict: Verdict, effects: Effects, *, command_in_tree: bool) -> Verdict:
    """Return what a mode makes of a verdict; `command_in_tree`: it is about a command in a profile for source trees."""
    if mode == "plan":
        return Verdict("deny", PLANNED)
    if verdict.rule is not None or verdict.decision == "deny" or count_changed(effects) == 0:
        return verdict
    if mode == "ask":
        asks = f"{summary(effects)}, and in this mode every change is asked about"
        return Verdict("ask", asks) if verdict.decision == "allow" else verdict
    if not command_in_tree:
        return verdict
    found = "; ".join(_exceptions(effects))
    return Verdict("ask", found) if found else Verdict("allow", f"{summary(effects)}, beneath the root")


def _exceptions(effects: Effects) -> Iterator[str]:
    """Yield what is asked about in a source tree, too."""
    if guarded := protected_changes(effects):
        yield f"protected files always need approval: {guarded}"
    if effects.left_out:
        yield f"{summary(effects)}, too many to list, which always needs approval"
    if gone := [change for change in effects.changes if change.what in _GONE and change.tracked]:
        yield f"it deletes what git tracks: {_names(gone)}"
    for kind, words in _ALWAYS_ASKED.items():
        if made := [change for _path, change in essential_changes(effects) if kind in kinds_of(change)]:
            yield f"it makes {words}: {_names(made)}"
    if effects.traffic:
        yield f"{summary(effects)}, and it used the network"


def _names(changes: list[Change]) -> str:
    told = [quoted(change.path[:_WIDTH]) for change in changes[:_TOLD]]
    return ", ".join([*told, *([f"{len(changes) - _TOLD} more"] if len(changes) > _TOLD else [])])
