"""May this call run? Pure: a call, a profile, what the model has seen, an answer with its reason.

Rule: deny by default. What a tool's arguments say never loosens anything; it can only make a person be asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from supervisor.profiles import Profile
from supervisor.tools.exfiltration import suspicion
from supervisor.tools.seen import Seen


@dataclass(frozen=True)
class Decision:
    """What is decided, and why, in words for the person and the journal."""

    decision: Literal["allow", "ask", "deny"]
    reason: str


class _ToUrl(msgspec.Struct):
    url: str


def _about_url(arguments: str, seen: Seen) -> str | None:
    try:
        url = msgspec.json.decode(arguments, type=_ToUrl).url
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None  # the tool will refuse it
    return suspicion(url, seen)


_LOOKS: Final[Mapping[str, Callable[[str, Seen], str | None]]] = MappingProxyType({"fetch_url": _about_url})
"""Tools whose arguments are looked at: why a person must decide, or None."""


def judge(profile: Profile, tool: str, arguments: str, seen: Seen) -> Decision:
    """Decide about one call of `tool`, with `arguments` as raw JSON, in a session of `profile`.

    `seen` is what the model had been shown when it wrote them.
    """
    if tool not in profile.tools:
        return Decision("deny", f"profile {profile.name} has no such tool")
    look = _LOOKS.get(tool)
    if look is not None and (reason := look(arguments, seen)):
        return Decision("ask", reason)  # before what the profile says: it tells the person more
    if tool in profile.ask:
        return Decision("ask", f"profile {profile.name} asks before each {tool}")
    return Decision("allow", f"profile {profile.name} allows {tool}")
