"""The system prompt of a session: what the agent can and cannot do here.

Rule: it depends on the profile and the context alone, so it stays the same for a conversation's life and can be
cached by the model's server. The words stand in prompt.md.
"""

from importlib import resources
from typing import Final

import msgspec

from supervisor.config.profiles import Profile

_ABSENT: Final = (
    (("run_cmd", "exec_shell"), "You cannot run programs or commands: no such tool exists here."),
    (("fetch_url",), "You cannot reach the network: no such tool exists here."),
    (("write_file", "edit_file"), "You cannot change files: no such tool exists here."),
)
"""What a profile without any of these tools has to say about itself."""


def system_prompt(profile: Profile) -> str:
    """Return the prompt for sessions of `profile`."""
    template = resources.files("supervisor.agent").joinpath("prompt.md").read_text("utf-8")
    context = msgspec.json.format(msgspec.json.encode(profile.context())).decode()
    lines = [sentence for tools, sentence in _ABSENT if not set(tools) & set(profile.tools)]
    if profile.ask:
        lines.append(f"A person is asked before each of: {', '.join(profile.ask)}. A denial is final for that call.")
    return template.format(context=context, tools=", ".join(profile.tools), abilities="\n".join(lines))
