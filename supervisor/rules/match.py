"""Judgement of effects by rules: allowed, asked about or denied, with the reason.

Rule: pure. A rule allows only what it covers entirely, and asks or denies where it touches anything; where something is
not known, it is taken for the worse. No rule allows what is protected or what was not listed in full.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from supervisor.rules.effect_summary import (
    blocked_attempts,
    changes_nothing,
    count_changed,
    essential_changes,
    exact_path,
    protected_changes,
    summary,
    tried_network,
)
from supervisor.rules.patterns import compiled
from supervisor.rules.rule import Rule, sentence
from workers.changes.effects import Effects
from workers.tree.glob import Matcher

_VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {"allow": "a rule covers it:", "ask": "a rule asks:", "deny": "a rule denies it:"}
)
_DELETED: Final = frozenset({"deleted", "replaced"})


class RuleVerdict(NamedTuple):
    """What is decided, and why, as a clause for the person, the model and the journal."""

    decision: Literal["allow", "ask", "deny"]
    reason: str
    rule: Rule | None
    """The one that decided; None where none did."""


def judge_effects(
    rules: Sequence[Rule], programs: Sequence[str] | None, effects: Effects, today: dt.date
) -> RuleVerdict:
    """Decide about what a command would change: the first rule that matches, and to ask where none does.

    Args:
        rules: in order; their patterns have been checked.
        programs: those of the command; None where they are not known.
        effects: what it would change.
        today: rules that have expired do not count.
    """
    if changes_nothing(effects):
        tried = blocked_attempts(effects)
        return RuleVerdict("allow", f"it changes nothing{f'; blocked: {tried}' if tried else ''}", None)
    command = _JudgedCommand(tuple(programs) if programs else None, effects)
    guarded = protected_changes(effects)
    for rule in rules:
        if rule.counts(today) and (command.covered_by(rule) if rule.decision == "allow" else command.touched_by(rule)):
            named = f"; protected: {guarded}" if guarded else ""
            return RuleVerdict(rule.decision, f"{_VERBS[rule.decision]} {sentence(rule)}{named}", rule)
    if guarded:
        return RuleVerdict("ask", f"protected files always need approval: {guarded}", None)
    if effects.left_out:
        return RuleVerdict("ask", f"{summary(effects)}, too many to list, which always needs approval", None)
    return RuleVerdict("ask", f"{summary(effects)}, and no rule covers that", None)


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
