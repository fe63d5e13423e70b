"""Judgement of effects by rules: allowed, asked about or denied, with the reason in a few words.

Rule: pure. A rule allows only what it covers entirely, and asks or denies where it touches anything; where something is
not known, it is taken for the worse. No rule allows what is protected or what was not listed in full.
Every name was chosen by a command that nobody trusts: it is shown escaped and cut, and compared as it is.
"""

import datetime as dt
import heapq
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from supervisor.display.changes import blocked, changed
from supervisor.display.escape import one_line
from supervisor.rules.rule import Rule, compiled, quoted, sentence
from workers.changes.effects import Change, Effects, What
from workers.tree.glob import Matcher

_VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {"allow": "a rule covers it:", "ask": "a rule asks:", "deny": "a rule denies it:"}
)
_DELETED: Final = frozenset({"deleted", "replaced"})
_TOLD: Final = 6
"""Changes that are named one by one."""
_WIDTH: Final = 100
"""Characters of one name."""

_ORDER: Final[Mapping[What, int]] = MappingProxyType(
    {"deleted": 0, "replaced": 0, "modified": 1, "added": 2, "mode": 3, "attributes": 3, "times": 4}
)
"""The order in which changes are named."""


class Verdict(NamedTuple):
    """What is decided, and why, as a clause for the person, the model and the journal."""

    decision: Literal["allow", "ask", "deny"]
    reason: str
    rule: Rule | None = None
    """The one that decided; None where none did."""


def judge_effects(rules: Sequence[Rule], programs: Sequence[str] | None, effects: Effects, today: dt.date) -> Verdict:
    """Decide about what a command would change: the first rule that matches, and to ask where none does.

    Args:
        rules: in order; their patterns have been checked.
        programs: those of the command; None where they are not known.
        effects: what it would change.
        today: rules that have expired do not count.
    """
    if count_changed(effects) == 0:
        tried = blocked_attempts(effects)
        return Verdict("allow", f"it changes nothing{f'; blocked: {tried}' if tried else ''}")
    command = _JudgedCommand(tuple(programs) if programs else None, effects)
    guarded = protected_changes(effects)
    for rule in rules:
        if rule.counts(today) and (command.covered_by(rule) if rule.decision == "allow" else command.touched_by(rule)):
            named = f"; protected: {guarded}" if guarded else ""
            return Verdict(rule.decision, f"{_VERBS[rule.decision]} {sentence(rule)}{named}", rule)
    if guarded:
        return Verdict("ask", f"protected files always need approval: {guarded}")
    if effects.left_out:
        return Verdict("ask", f"{summary(effects)}, too many to list, which always needs approval")
    return Verdict("ask", f"{summary(effects)}, and no rule covers that")


class _JudgedCommand:
    """One command's effects, ready to be compared with rules."""

    def __init__(self, programs: tuple[str, ...] | None, effects: Effects) -> None:
        self._programs = programs
        self._effects = effects
        self._count = count_changed(effects)
        self._tried_network = tried_network(effects)
        self._judgeable = not effects.left_out and not any(change.protected for change in effects.changes)
        self._changes = [(exact_path(change), change.what) for change in effects.changes]
        self._essential = [(path, change.what) for path, change in essential_changes(effects)]

    def covered_by(self, rule: Rule) -> bool:
        """Say whether a rule covers everything."""
        return (
            self._judgeable
            and (rule.max_files is None or self._count <= rule.max_files)
            and (rule.network or not self._tried_network)
            and (rule.programs is None or (self._programs is not None and {*self._programs} <= {*rule.programs}))
            and self._all_match(compiled(rule.writes), compiled(rule.deletes))
        )

    def touched_by(self, rule: Rule) -> bool:
        """Say whether a rule speaks of anything in it. A program is also known by the last part of its path."""
        if rule.programs is not None and self._programs is not None:
            names = {name for each in self._programs for name in (each, each.rpartition("/")[2])}
            if not names & {*rule.programs}:
                return False
        if rule.network and self._tried_network:
            return True
        if not rule.writes and not rule.deletes:
            return not rule.network
        return self._any_matches(compiled(rule.writes), compiled(rule.deletes))

    def _all_match(self, writes: Matcher, deletes: Matcher) -> bool:
        return all(
            (what == "deleted" or writes.matches(path)) and (what not in _DELETED or deletes.matches(path))
            for path, what in self._essential
        )

    def _any_matches(self, writes: Matcher, deletes: Matcher) -> bool:
        return any(
            (what != "deleted" and writes.matches(path)) or (what in _DELETED and deletes.matches(path))
            for path, what in self._changes
        )


# --- effects by their exact names, and in words ----------------------------------------------------------------------


class NamedChange(NamedTuple):
    """One change by its exact name; bytes that are not UTF-8 are surrogates, as os.fsdecode makes them."""

    path: str
    change: Change


def exact_path(change: Change) -> str:
    """Return the path of a change as it is; bytes that are not UTF-8 become surrogates, as os.fsdecode makes them."""
    return change.raw_path.decode("utf-8", "surrogateescape") if change.raw_path else change.path


def essential_changes(effects: Effects) -> list[NamedChange]:
    """Return the changes without the directories that merely come, or go, with what changes in them."""
    named = [NamedChange(exact_path(change), change) for change in effects.changes]
    parents = {path.rpartition("/")[0] for path, _change in named}
    return [each for each in named if not (each.path in parents and _is_directory(each.change))]


def _is_directory(change: Change) -> bool:
    """Say whether it is a directory that is there only afterwards, or was there only before."""
    state = change.after if change.before is None else change.before
    return change.what in {"added", "deleted"} and state is not None and state.kind == "dir"


def count_changed(effects: Effects) -> int:
    """Return how many names a call would change, also those that are not listed."""
    return max(sum(effects.totals.values()), len(effects.changes) + sum(effects.left_out.values()))


def summary(effects: Effects) -> str:
    """Return the changes as a clause."""
    return f"{_subject(effects)} would change ({_told(effects)})"


def protected_changes(effects: Effects) -> str:
    """Return the changes that are always asked about, each with the reason; empty if there are none."""
    found = [change for change in effects.changes if change.protected]
    told = [f"{_name(change)} ({one_line(change.protected, _WIDTH)})" for change in found[:_TOLD]]
    return _with_more(told, len(found) - len(told))


def blocked_attempts(effects: Effects) -> str:
    """Return the attempts of a command that the sandbox has blocked; empty if there were none."""
    told = [blocked(one_line(each.what, _WIDTH), each.kind, each.count) for each in effects.refused[:_TOLD]]
    return _with_more(told, len(effects.refused) - len(told) + effects.refused_left_out)


def tried_network(effects: Effects) -> bool:
    """Say whether a command tried the network, or may have, among attempts that are not listed."""
    return bool(effects.refused_left_out) or any(each.kind == "network" for each in effects.refused)


def _subject(effects: Effects) -> str:
    states = [state.kind for change in effects.changes for state in (change.before, change.after) if state]
    number = count_changed(effects)
    noun = "file" if not effects.left_out and "dir" not in states else "name"
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _told(effects: Effects) -> str:
    first = heapq.nsmallest(_TOLD, effects.changes, key=_weight)
    return _with_more([changed(_name(change), change.what) for change in first], count_changed(effects) - len(first))


def _weight(change: Change) -> tuple[bool, int, str]:
    return not change.protected, _ORDER[change.what], change.path


def _name(change: Change) -> str:
    path = change.path
    return quoted(path if len(path) <= _WIDTH else f"{path[: _WIDTH // 2]}...{path[-_WIDTH // 2 :]}")


def _with_more(told: Sequence[str], more: int) -> str:
    return ", ".join([*told, f"{more} more"] if more > 0 else told)
