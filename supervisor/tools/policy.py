"""Policy: decides whether a call may start, and whether its effects are allowed, denied or need approval. Pure.

Rule: deny by default. What a tool's arguments say never loosens anything; it can only make a person be asked. Commands
are judged by their effects, which a rehearsal finds; their text is only asked about where the profile says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

import msgspec

from supervisor.config.profiles import Profile
from supervisor.rules.match import RuleVerdict, judge_effects
from supervisor.rules.rule import Rule
from supervisor.rules.started_programs import programs_of
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.exfiltration.judge import suspicion
from workers.catalog import CATEGORIES
from workers.changes.effects import Effects

_EVERY: Final = tuple(tool for category in CATEGORIES.values() for tool in category.tools)

COMMANDS: Final = frozenset(tool.name for tool in _EVERY if tool.runs)
"""Tools that may change anything in the root, and so are judged by what they would."""

_EFFECTS: Final = frozenset(tool.name for tool in _EVERY if tool.effect)

_ADDRESSES: Final = {tool.name: tool.subject for tool in _EVERY if tool.kind == "fetch"}
"""The argument that names an address: it may carry out what was read."""


@dataclass(frozen=True)
class PolicyDecision:
    """What is decided, and why, in words for the person and the journal."""

    decision: Literal["allow", "ask", "deny"]
    reason: str


def _carries_out(tool: str, arguments: str, seen: SeenText) -> str | None:
    """Return why a person must decide about the address in a call's arguments; None where nobody needs to."""
    try:
        url = msgspec.json.decode(arguments)[_ADDRESSES[tool]] if tool in _ADDRESSES else None
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, TypeError):
        return None  # the tool will refuse it
    return suspicion(url, seen) if isinstance(url, str) else None


def judge(profile: Profile, tool: str, arguments: str, seen: SeenText) -> PolicyDecision:
    """Decide whether a call of `tool` may start, with `arguments` as raw JSON, in a session of `profile`.

    `seen` is what the model had been shown when it wrote them. What may start is only rehearsed, if it has an effect.
    """
    if tool not in profile.tools:
        why = "has no such tool" if tool not in dict(profile.unavailable_tools) else f"cannot have {tool} here"
        return PolicyDecision("deny", f"profile {profile.name} {why}")
    if reason := _carries_out(tool, arguments, seen):
        return PolicyDecision("ask", reason)  # before what the profile says: it tells the person more
    if tool in profile.ask:
        if tool in _EFFECTS and tool not in COMMANDS:
            return PolicyDecision("allow", f"profile {profile.name} asks about what each {tool} would change")
        return PolicyDecision("ask", f"profile {profile.name} asks before each {tool}")
    if tool in COMMANDS:
        return PolicyDecision(
            "allow", f"profile {profile.name} rehearses each {tool}, and asks about what it would change"
        )
    return PolicyDecision("allow", f"profile {profile.name} allows {tool}")


def judge_changes(
    profile: Profile,
    tool: str,
    arguments: str,
    effects: Effects,
    rules: tuple[Sequence[Rule], Sequence[Rule]],
    today: date,
) -> RuleVerdict:
    """Decide whether what a call would change becomes so.

    Args:
        profile: the session's.
        tool: what was rehearsed.
        arguments: the ones that were, raw JSON.
        effects: what it would change.
        rules: the operator's, and those that people made in reviews. The latter only answer what would be asked.
        today: for rules that end.
    """
    if tool not in COMMANDS:
        if tool in profile.ask:
            return RuleVerdict("ask", f"profile {profile.name} asks before each {tool}", None)
        return RuleVerdict("allow", f"profile {profile.name} allows {tool}", None)
    programs = programs_of(tool, arguments)
    configured, made = rules
    verdict = judge_effects(configured, programs, effects, today)
    if verdict.decision == "ask":
        by_person = judge_effects(made, programs, effects, today)
        if by_person.decision == "allow":
            return by_person
    return verdict
