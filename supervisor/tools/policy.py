"""May this call run? Pure: a call, a profile, an answer with its reason.

Rule: deny by default. What a tool's arguments say never loosens anything.
"""

from dataclasses import dataclass
from typing import Literal

from supervisor.profiles import Profile


@dataclass(frozen=True)
class Decision:
    """What is decided, and why, in words for the person and the journal."""

    decision: Literal["allow", "ask", "deny"]
    reason: str


def judge(profile: Profile, tool: str, arguments: str) -> Decision:  # noqa: ARG001 - each text is judged anew
    """Decide about one call of `tool`, with `arguments` as raw JSON, in a session of `profile`."""
    if tool not in profile.tools:
        return Decision("deny", f"profile {profile.name} has no such tool")
    if tool in profile.ask:
        return Decision("ask", f"profile {profile.name} asks before each {tool}")
    return Decision("allow", f"profile {profile.name} allows {tool} in its root")
