"""`%%strongroom`: a cell of IPython or Jupyter is what the agent is asked.

Rule: the first cell starts a conversation, where `start` has not; one with words `NAME=VALUE` behind `%%strongroom`
starts another, as `start` does.
"""

import shlex
from typing import Any, Protocol

from supervisor.clients.python import repl
from supervisor.errors import ConfigError

_NAMES = ("model", "profile", "root", "group", "technology", "environment", "home")


class Shell(Protocol):
    """IPython's shell, as far as it matters here."""

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        """Make a function known as a magic."""


def load_ipython_extension(shell: Shell) -> None:
    """Add the magic; IPython calls this for `%load_ext strongroom`."""
    shell.register_magic_function(ask_cell, "cell", "strongroom")


def ask_cell(line: str, cell: str) -> None:
    """Ask what stands in the cell.

    Raises:
        StrongroomError: there is no conversation, and none can be started so.
    """
    words = [word.partition("=") for word in shlex.split(line)]
    wrong = [f"{name}{sign}{value}" for name, sign, value in words if not sign or name not in _NAMES]
    if wrong:
        raise ConfigError(f"Not an option: {wrong[0]}. Write NAME=VALUE; there are {', '.join(_NAMES)}.")
    if words or not repl.is_started():
        repl.start(**{name: value for name, _sign, value in words})
    repl.chat(cell.strip())
