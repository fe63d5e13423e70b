"""Judgement of effects by rules: allowed, asked about or denied, with the reason in a few words.

Rule: pure. A rule allows only what it covers entirely, and asks or denies where it touches anything; where something is
not known, it is taken for the worse: what was not listed is touched by whatever speaks of its kind. No rule allows what
is protected or what was not listed in full.
Every name was chosen by a command that nobody trusts: it is shown escaped and cut, and compared as it is.
"""

import datetime as dt
import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import msgspec

from supervisor.display.changes import blocked, changed, concerns
from supervisor.display.escape import one_line
from supervisor.display.git_words import git_words, own_part
from supervisor.display.unseen import is_unasked
from supervisor.rules.change_kinds import ONLY_BY_NAME, NamedChange, essential_changes, exact_path, kinds_of
from supervisor.rules.git_changes import in_git, only_adds
from supervisor.rules.rule import UNCOVERED, ChangeKind, Rule, compiled, quoted_path
from supervisor.rules.rule_sentence import sentence
from supervisor.rules.started_programs import GIT, Started
from workers.changes.effects import Change, Effects, What
from workers.tree.glob import Matcher
from workers.tree.obeyed_names import makers_of

_VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {"allow": "a rule covers it:", "ask": "a rule asks:", "deny": "a rule denies it:"}
)
_DELETED: Final = frozenset({"deleted", "replaced"})
_TOLD: Final = 6
"""Changes that are named one by one."""
_READING: Final = "cat cd cut du grep head ls nl sleep stat tail tr uname wc which"
_PRINTERS: Final = frozenset(_READING.split())
"""Programs that write no file, beside those whose work it is: where they are known, no shell redirects their output."""
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


def judge_effects(
    rules: Sequence[Rule], started: Started | Sequence[str] | None, effects: Effects, today: dt.date
) -> Verdict:
    """Decide about what a command would change: the first rule that matches, and to ask where none does.

    Args:
        rules: in order; their patterns have been checked.
        started: the programs of the command, alone or with what else is known; None where they are not known.
        effects: what it would change.
        today: rules that have expired do not count.
    """
    if count_changed(effects) == 0:
        tried = blocked_attempts(effects)
        return Verdict("allow", f"it changes nothing{f'; blocked: {tried}' if tried else ''}")
    if not isinstance(started, Started):
        started = Started(tuple(started) if started else None, None)
    command = _JudgedCommand(started, effects)
    guarded = protected_changes(effects)
    for rule in rules:
        if rule.counts(today) and (command.covered_by(rule) if rule.decision == "allow" else command.touched_by(rule)):
            named = f"; protected: {guarded}" if guarded else ""
            return Verdict(rule.decision, f"{_VERBS[rule.decision]} {sentence(rule)}{named}", rule)
    if guarded:
        return Verdict("ask", f"protected files always need approval: {guarded}")
    if effects.left_out:
        return Verdict("ask", f"{summary(effects)}, too many to list, which always needs approval")
    return Verdict("ask", f"{summary(effects)}, {UNCOVERED}")


def judge_unrehearsed(rules: Sequence[Rule], started: Started, today: dt.date) -> Verdict:
    """Deny what runs without a rehearsal, by the first rule that may speak of it; else ask.

    What it would change is not known: it may be any path, and of any kind; a network it has, or not.
    """
    for rule in rules:
        if rule.decision != "deny" or not rule.counts(today) or _speaks_of(rule, started) is False:
            continue
        if _only_network(rule) and rule.programs is None and not started.network:
            continue
        by_name = rule.programs is not None or not (rule.writes or rule.deletes or rule.kinds)
        why = "" if by_name else "; what it would change is not known before it runs, so it may not run"
        return Verdict("deny", f"{_VERBS['deny']} {sentence(rule)}{why}", rule)
    return Verdict("ask", "")


def _speaks_of(rule: Rule, started: Started) -> bool | None:
    """Say whether a rule that asks or denies speaks of what is run; None where it may.

    A program is also known by the last part of its path.
    """
    if rule.programs is None:
        return True
    if started.programs is None:
        return None
    names = {name for each in started.programs for name in (each, each.rpartition("/")[2])}
    named = bool(names & {*rule.programs} - ({GIT} if rule.git is not None else set()))
    if not named and rule.git is not None and GIT in names:
        return None if started.git is None else bool({*started.git} & {*rule.git})
    return named or (None if started.launches else False)


def _only_network(rule: Rule) -> bool:
    return rule.network and not rule.writes and not rule.deletes and rule.kinds is None


def network_denied(rules: Sequence[Rule], started: Started, today: dt.date) -> Rule | None:
    """Return the rule by which a command gets no network, if there is one: it may speak of what is run."""
    denying = (rule for rule in rules if rule.decision == "deny" and rule.network and rule.counts(today))
    return next((rule for rule in denying if _speaks_of(rule, started) is not False), None)


class _JudgedCommand:
    """One command's effects, ready to be compared with rules."""

    def __init__(self, started: Started, effects: Effects) -> None:
        self._started = started
        self._effects = effects
        self._count = count_changed(effects)
        self._tried_network = started.network or tried_network(effects)
        self._judgeable = not effects.left_out and not unmade(effects, started.programs)
        self._changes = [NamedChange(exact_path(change), change) for change in effects.changes]
        self._essential = essential_changes(effects)
        self._kinds: list[frozenset[ChangeKind]] | None = None

    def covered_by(self, rule: Rule) -> bool:
        """Say whether a rule covers everything."""
        return (
            self._judgeable
            and (rule.max_files is None or self._count <= rule.max_files)
            and (rule.max_bytes is None or self._effects.size <= rule.max_bytes)
            and (rule.network or not self._tried_network)
            and (rule.programs is None or self._runs_only(rule.programs))
            and (rule.git is None or (self._started.git is not None and {*self._started.git} <= {*rule.git}))
            and not (rule.ignored and any(not change.ignored for _path, change in self._essential))
            and self._kinds_covered(rule)
            and self._all_match(compiled(rule.writes), compiled(rule.deletes))
        )

    def touched_by(self, rule: Rule) -> bool:
        """Say whether a rule speaks of anything in it."""
        if _speaks_of(rule, self._started) is False:
            return False
        if rule.network and self._tried_network:
            return True
        return not _only_network(rule) and self._any_matches(rule)

    def _runs_only(self, programs: Sequence[str]) -> bool:
        return bool(self._started.programs) and {*(self._started.programs or ())} <= {*programs}

    def _kinds_covered(self, rule: Rule) -> bool:
        kinds = frozenset[ChangeKind]().union(*self._all_kinds())
        if not (kinds.isdisjoint(ONLY_BY_NAME) if rule.kinds is None else kinds <= {*rule.kinds}):
            return False
        if rule.git is not None:
            return all(only_adds(path, change.what) for path, change in self._essential)
        return rule.kinds is None or not any(in_git(path) for path, _change in self._essential)

    def _all_kinds(self) -> list[frozenset[ChangeKind]]:
        if self._kinds is None:
            self._kinds = [kinds_of(change) for _path, change in self._changes]
        return self._kinds

    def _all_match(self, writes: Matcher, deletes: Matcher) -> bool:
        return all(
            (change.what == "deleted" or writes.matches(path))
            and (change.what not in _DELETED or deletes.matches(path))
            for path, change in self._essential
        )

    def _any_matches(self, rule: Rule) -> bool:
        """Say whether any change, listed or not, is what a rule speaks of; without patterns that is any path."""
        changes, left_out = self._changes, self._effects.left_out
        if rule.kinds is not None:
            wanted = {*rule.kinds}
            changes = [each for each, kinds in zip(changes, self._all_kinds(), strict=True) if kinds & wanted]
        if rule.ignored:
            changes = [each for each in changes if each.change.ignored]
        if not rule.writes and not rule.deletes:
            return bool(changes or left_out)
        if any((rule.writes and what != "deleted") or (rule.deletes and what in _DELETED) for what in left_out):
            return True
        writes, deletes = compiled(rule.writes), compiled(rule.deletes)
        return any(
            (change.what != "deleted" and writes.matches(path)) or (change.what in _DELETED and deletes.matches(path))
            for path, change in changes
        )


# --- effects in words ------------------------------------------------------------------------------------------------


def count_changed(effects: Effects) -> int:
    """Return how many names a call would change, also those that are not listed."""
    return max(sum(effects.totals.values()), len(effects.changes) + sum(effects.left_out.values()))


def summary(effects: Effects) -> str:
    """Return the changes as a clause: those in repositories in git's words, those that git ignores as a number."""
    told = [change for change in effects.changes if not is_unasked(change, effects)]
    quiet = len(effects.changes) - len(told)
    others = [change for change in told if change.protected or not (effects.git and own_part(change.path))]
    totals = dict(Counter(change.what for change in others) + Counter(effects.left_out))
    rest = msgspec.structs.replace(effects, changes=tuple(others), totals=totals)
    parts = [f"git: {git_words(effects.git, _TOLD)}"] if effects.git else []
    parts += [f"{_subject(rest)} would change ({_told(rest)})"] if others or effects.left_out or not parts else []
    return "; ".join([*parts, f"{quiet} that git ignores"] if quiet else parts)


def unmade(effects: Effects, programs: Sequence[str] | None) -> list[Change]:
    """Return the protected changes, but for those that are the ordinary work of every program of a command."""
    names = {each.rpartition("/")[2] for each in programs or ()} - _PRINTERS
    found = [change for change in effects.changes if change.protected]
    return [each for each in found if not (names and names <= makers_of(exact_path(each)))]


def protected_changes(effects: Effects) -> str:
    """Return the changes that are always asked about, each with the reason; empty if there are none."""
    found = [change for change in effects.changes if change.protected]
    reasons: dict[str, list[str]] = {}
    for change in found[:_TOLD]:
        reasons.setdefault(one_line(change.protected, _WIDTH), []).append(quoted_path(change.path))
    told = [f"{', '.join(names)} ({reason})" for reason, names in reasons.items()]
    return _with_more(told, len(found) - _TOLD)


def without(effects: Effects, reason: str) -> Effects:
    """Return effects without the changes that are protected for that reason."""
    left = tuple(change for change in effects.changes if change.protected != reason)
    return effects if len(left) == len(effects.changes) else msgspec.structs.replace(effects, changes=left)


def blocked_attempts(effects: Effects) -> str:
    """Return the attempts of a command that the sandbox has blocked; empty if there were none that are told."""
    first = [each for each in effects.refused if concerns(each.kind, each.what)][:_TOLD]
    told = [blocked(one_line(each.what, _WIDTH), each.kind, each.count) for each in first]
    more = len(effects.refused) - len(told) + effects.refused_left_out
    return _with_more(told, more) if told or effects.refused_left_out else ""


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
    return _with_more(
        [changed(quoted_path(change.path), change.what) for change in first], count_changed(effects) - len(first)
    )


def _weight(change: Change) -> tuple[bool, int, str]:
    return not change.protected, _ORDER[change.what], change.path


def _with_more(told: Sequence[str], more: int) -> str:
    return ", ".join([*told, f"{more} more"] if more > 0 else told)
