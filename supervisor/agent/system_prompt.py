"""The system prompt of a session: what the agent can and cannot do here.

Rule: it depends on the profile and the context alone, so it stays the same for a conversation's life and can be
cached by the model's server. The words stand in prompt.md.
"""

from functools import cache
from importlib import resources
from typing import Final

import msgspec

from supervisor.config.profiles import Profile
from workers.catalog import find_tool

_MACHINE: Final = (
    "Commands see this machine, read-only: its processes, logs, disks, network interfaces and listening ports, but no "
    "homes, keys or passwords, whose processes hold which port only by their command lines, and no D-Bus. They reach "
    "no service, no network and no other process. What must (systemctl, sudo, kill, a package manager) say in a "
    "sentence and propose: the person who is asked can choose to run it on the real system."
)
_ROOT_IS_ALL: Final = "The root is the whole machine: nothing can be changed."
_ABSENT: Final = (
    ("execute", "You cannot run programs or commands: no such tool exists here."),
    ("fetch", "You cannot reach the network: no such tool exists here."),
    ("edit", "You cannot change files: no such tool exists here."),
)
"""What a profile without any tool of a kind has to say about itself."""


def system_prompt(profile: Profile) -> str:
    """Return the prompt for sessions of `profile`."""
    context = msgspec.json.format(msgspec.json.encode(profile.context())).decode()
    kinds = {row.kind for name in profile.tools if (row := find_tool(name))}
    lines = [sentence for kind, sentence in _ABSENT if kind not in kinds]
    if profile.traits.machine and "execute" in kinds:
        lines.append(_MACHINE)
        lines += [_ROOT_IS_ALL] if profile.root == "/" else []
    if profile.ask:
        lines.append(f"A person is asked before each of: {', '.join(profile.ask)}. A denial is final for that call.")
    return _template().format(context=context, tools=", ".join(profile.tools), abilities="\n".join(lines))


@cache
def _template() -> str:
    return resources.files("supervisor.agent").joinpath("prompt.md").read_text("utf-8")
