"""Notices that a client is given as a session opens: of what the session lacks, and what to do.

Rule: pure. Each says first, in capitals, what somebody who reads nothing else must know.
"""

from typing import Final

from supervisor.config.profiles import Profile

_NO_MODEL: Final = (
    "NO LANGUAGE MODEL: {why} Until then the offline model answers: it turns plain commands such as "
    "'list **/*.md' or 'read notes/idea.md' into tool calls, and nothing else."
)
_NO_TOOL: Final = (
    "TOOL {tool} IS UNAVAILABLE: its workers {why}. Nothing runs without its sandbox. Run `strongroom doctor`, follow "
    "its advice, and open a new session."
)
_COPIES: Final = (
    "COMMANDS RUN IN COPIES of the root, held by Landlock and seccomp alone and without a network, as this system lets "
    "no sandbox be made. Run `strongroom doctor` to see why."
)


def opening_notices(substituted: str, profile: Profile) -> list[str]:
    """Return what to tell of a session; `substituted` says why it has no language model."""
    model = [_NO_MODEL.format(why=substituted)] if substituted else []
    copies = [_COPIES] * profile.copies
    return [*model, *copies, *(_NO_TOOL.format(tool=tool, why=why) for tool, why in profile.unavailable_tools)]
