"""Modes of a session: which changes a person is asked about, whatever tool makes them.

Rule: pure, and a table. What rules say holds in every mode, and what the profile asks about is asked about in each. In
a source tree the mode `edits` lets pass what stays beneath the root and can be taken back; nothing passes in `plan`,
whose workers commit nothing (`supervisor.pool.pools.PLAN`).
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from supervisor.display.git_words import git_words, own_part
from supervisor.display.package_folders import folder_of
from supervisor.rules.change_kinds import essential_changes, kinds_of
from supervisor.rules.git_changes import in_git, only_adds
from supervisor.rules.install_effects import leads_to_python
from supervisor.rules.judge_effects import Verdict, count_changed, protected_changes, summary, unmade
from supervisor.rules.rule import ChangeKind, Mode, quoted
from workers.changes.effects import Change, Effects
from workers.tree.obeyed_names import makers_of

MODES: Final[Mapping[Mode, str]] = MappingProxyType(
    {
        "ask": "Every change is asked about, by whatever tool.",
        "edits": "Changes beneath the root are made, and the rest is asked about, as the profile says.",
        "plan": "Nothing is changed: edits and commands are rehearsed, and what they would change is shown.",
    }
)
PLANNED: Final = "the session is in plan mode"

_ALWAYS_ASKED: Final[Mapping[ChangeKind, str]] = MappingProxyType(
    {"link-outside": "links that lead outside", "special": "special files", "setuid": "set-user-ID bits"}
)
_GONE: Final = frozenset({"deleted", "replaced"})
_STASH: Final = frozenset({".git/refs/stash", ".git/logs/refs/stash"})
_TOLD: Final = 6
_WIDTH: Final = 100


class InTree(NamedTuple):
    """What else is known of a command in a profile for source trees."""

    programs: Sequence[str] | None
    """Those that it runs; None where they are not known."""
    index_unseen: bool = False
    """The root lies in a repository whose index is not beneath it: all may be tracked."""


def judge_by_mode(mode: Mode, verdict: Verdict, effects: Effects, tree: InTree | None = None) -> Verdict:
    """Return what a mode makes of a verdict; `tree` is None but for a command in a profile for source trees."""
    if mode == "plan":
        return Verdict("deny", PLANNED)
    if verdict.rule is not None or verdict.decision == "deny" or count_changed(effects) == 0:
        return verdict
    if mode == "ask":
        asks = f"{summary(effects)}, and in this mode every change is asked about"
        return Verdict("ask", asks) if verdict.decision == "allow" else verdict
    if tree is None:
        return verdict
    found = "; ".join(_exceptions(effects, tree))
    return Verdict("ask", found) if found else Verdict("allow", f"{summary(effects)}, beneath the root")


def _exceptions(effects: Effects, tree: InTree) -> Iterator[str]:
    """Yield what is asked about in a source tree, too."""
    made = {change.path for change in effects.changes if change.ignored} - {
        change.path for change in unmade(effects, tree.programs)
    }
    made |= _gone_whole(effects)
    if guarded := protected_changes(
        msgspec.structs.replace(effects, changes=tuple(each for each in effects.changes if each.path not in made))
    ):
        yield f"protected files always need approval: {guarded}"
    if effects.left_out:
        yield f"{summary(effects)}, too many to list, which always needs approval"
    may_be_tracked = [each for each in effects.changes if each.tracked or (tree.index_unseen and not each.ignored)]
    if gone := [change for change in may_be_tracked if change.what in _GONE]:
        yield f"it deletes what git tracks{' or may track' * tree.index_unseen}: {_names(gone)}"
    if lost := _lost(effects):
        yield f"it takes away what git keeps: {', '.join(lost)}"
    if any(change.tracked and change.what not in _GONE for change in effects.changes):
        yield "git would no longer track files that stay"
    for kind, words in _ALWAYS_ASKED.items():
        found = [change for change in effects.changes if kind in kinds_of(change)]
        if found := [each for each in found if each.path not in made or not leads_to_python(each)]:
            yield f"it makes {words}: {_names(found)}"
    if effects.traffic:
        yield f"{summary(effects)}, and it used the network"


def _gone_whole(effects: Effects) -> set[str]:
    """Return what goes with a directory that git ignores, whole: a build, or an environment, is no part of another.

    What no build makes, another version control's history for one, stays a thing to ask about.
    """
    gone = {each.path: each for each in effects.changes if each.what == "deleted" and each.ignored and not each.tracked}
    tops = {
        path: each.before is not None and each.before.kind == "dir" and folder_of(path) in ("", path)
        for path, each in gone.items()
        if posixpath.dirname(path) not in gone
    }
    return {
        path
        for path, each in gone.items()
        if (each.level != "refused" or makers_of(path)) and any(tops.get(path[:at]) for at in (*_ends(path), len(path)))
    }


def _ends(path: str) -> Iterator[int]:
    """Yield where each directory above a path ends."""
    at = path.find("/")
    while at > 0:
        yield at
        at = path.find("/", at + 1)


def _lost(effects: Effects) -> list[str]:
    """Return what git keeps and would not have any more, in its words or by name; nothing of a stash that is popped."""
    essential = essential_changes(effects)
    popped = any(not in_git(path) for path, _change in essential)
    named = {each.new for each in effects.git}
    refs = [each for each in effects.git if each.kind == "moved" and not each.new]
    told = {posixpath.join(each.repository, ".git", part, each.name) for each in refs for part in ("", "logs")}
    lost = [
        change
        for path, change in essential
        if (not only_adds(path, change.what) or _is_shorter_log(path, change))
        and not (popped and path in _STASH)
        and not (change.what == "added" and change.after is not None and change.after.kind == "dir")
        and path not in told
    ]
    stash = "refs/stash" if popped else ""
    refs = [each for each in refs if each.old not in named and (each.name != stash or each.repository)]
    return [*filter(None, [git_words(refs, _TOLD)]), *filter(None, [_names(lost)])]


def _is_shorter_log(path: str, change: Change) -> bool:
    """Say whether git's log of a reference, from which commits can be found again, loses lines."""
    before, after = change.before, change.after
    return own_part(path) == "logs" and before is not None and after is not None and after.size < before.size


def _names(changes: list[Change]) -> str:
    told = [quoted(change.path[:_WIDTH]) for change in changes[:_TOLD]]
    return ", ".join([*told, *([f"{len(changes) - _TOLD} more"] if len(changes) > _TOLD else [])])
