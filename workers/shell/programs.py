"""Programs that a command may name, their files, and the environment that they run in.

Rule: a name is looked up in the system's directories and the toolchains, never in the root, and in no PATH that
somebody brought along. The environment is built from nothing.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from workers.errors import ToolError
from workers.shell.command_line import SYSTEM_PATH, find_program
from workers.shell.sandbox.private_root import HOME

_ALWAYS: Final = MappingProxyType(
    {
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108 - the private one
        "TERM": "dumb",
        "NO_COLOR": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",  # looking changes nothing
        "CARGO_HOME": f"{HOME}/.cargo",
        # There is no network, and trying again and again takes longer than a command may.
        "CARGO_NET_RETRY": "0",
        "npm_config_fetch_retries": "0",
    }
)

_ECHO: Final = 80
"""Characters of a refused name that the error repeats."""


def search_path(toolchains: Sequence[str]) -> tuple[str, ...]:
    """Return the directories in which programs are found: those of the toolchains first."""
    return (*toolchains, *SYSTEM_PATH)


def environment(path: Sequence[str]) -> dict[str, str]:
    """Return a command's whole environment."""
    return {**_ALWAYS, "PATH": ":".join(path)}


def find(name: str, allowed: Sequence[str], path: Sequence[str]) -> str:
    """Return the file of an allowed program.

    Raises:
        ToolError: `command_not_allowed`, it is not one of them, letter by letter; `not_found`, it is not installed.
    """
    if name not in allowed:
        shown = name[:_ECHO] + ("..." if len(name) > _ECHO else "")
        split = ' Give the program alone as "command", and each of its arguments as one of "args"; no shell reads them.'
        advice = split if name.split() != [name] and name.split()[:1] else ""
        raise ToolError(
            "command_not_allowed",
            f"The command {shown!r} is not allowed here. Allowed, exactly so and without a path: {', '.join(allowed)}."
            f"{advice}",
            command=shown,
        )
    if file := find_program(name, path):
        return file
    raise ToolError(
        "not_found",
        f"The program {name!r} is allowed, but it is not installed where commands can see it. Use another one; the "
        "operator may name its directory in `toolchains` of [shell].",
        command=name,
    )
