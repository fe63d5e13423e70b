"""Policy: decides whether a call may start. Pure.

Rule: deny by default. What a tool's arguments say never loosens anything; it can only make a person be asked. Commands
are judged by their effects, which a rehearsal finds (`session_rules`); their text is only asked about where the profile
says so.
"""

from collections.abc import Callable
from typing import Final

from supervisor.config.profiles import Profile
from supervisor.rules.judge_effects import Verdict
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.exfiltration.flow_ledger import fetched_address
from supervisor.tools.exfiltration.judge import suspicion
from workers.catalog import CATEGORIES

_EVERY: Final = tuple(tool for category in CATEGORIES.values() for tool in category.tools)

COMMANDS: Final = frozenset(tool.name for tool in _EVERY if tool.runs)
"""Tools that may change anything in the root, and so are judged by what they would."""

_EFFECTS: Final = frozenset(tool.name for tool in _EVERY if tool.effect)
_ALONE: Final = "it sees the root and programs alone"
_PRIVATE: Final = "it sees the root and programs, and not this machine: that view cannot be had here"


def judge(profile: Profile, tool: str, arguments: str, seen: SeenText) -> Verdict:
    """Decide whether a call of `tool` may start, with `arguments` as raw JSON, in a session of `profile`.

    `seen` is what the model had been shown when it wrote them. What may start is only rehearsed, if it has an effect.
    """
    if tool not in profile.tools:
        why = "has no such tool" if tool not in dict(profile.unavailable_tools) else f"cannot have {tool} here"
        return Verdict("deny", f"profile {profile.name} {why}")
    if (address := fetched_address(tool, arguments)) is not None and (reason := suspicion(address, seen)):
        return Verdict("ask", reason)  # before what the profile says: it tells the person more
    if tool in profile.ask:
        if tool in _EFFECTS and tool not in COMMANDS:
            return Verdict("allow", f"profile {profile.name} asks about what each {tool} would change")
        return Verdict("ask", f"profile {profile.name} asks before each {tool}")
    if tool in COMMANDS:
        return Verdict("allow", f"profile {profile.name} rehearses each {tool}, and asks about what it would change")
    return Verdict("allow", f"profile {profile.name} allows {tool}")


def view(profile: Profile, tool: str, held: Callable[[], str]) -> str:
    """Return what a command would see, in words for the question about its text; `held` says what its workers do."""
    if tool not in COMMANDS:
        return ""
    if profile.view != "machine":
        return _ALONE if tool in profile.ask else ""
    if profile.network:
        return f"{_ALONE}, for the profile names hosts in `network`"
    whole = "nothing" if profile.root == "/" else "nothing outside of the root"
    seen = "private" if profile.copies else held()
    return {"machine": f"it sees this machine and can change {whole}", "private": _PRIVATE}.get(seen, "")
