"""Places where things are kept, as the environment says.

Rule: this imports next to nothing: a program asks it before it has read its own command line.
"""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

_XDG_VARIABLES: Final = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


class Places(NamedTuple):
    """Paths, of which only a given home may be relative."""

    home: str
    config_file: str
    logs: str
    socket: str
    variables: tuple[str, ...]
    """Of the environment, those that said so."""

    @property
    def lock(self) -> str:
        """The file whose lock the running daemon holds."""
        return f"{self.home}/daemon.lock"

    @property
    def errors(self) -> str:
        """The file for what a daemon in the background says before it has a log."""
        return f"{self.logs}/daemon.err"


def places(environ: Mapping[str, str]) -> Places:
    """Return where things are kept."""
    if home := environ.get("STRONGROOM_HOME"):
        return Places(home, f"{home}/config.toml", f"{home}/logs", f"{home}/daemon.sock", ("STRONGROOM_HOME",))
    user = environ.get("HOME") or os.path.expanduser("~")

    def xdg(variable: str, default: str) -> str:
        value = environ.get(variable, "")
        return f"{value if value.startswith('/') else f'{user}/{default}'}/strongroom"

    home, runtime = xdg("XDG_DATA_HOME", ".local/share"), environ.get("XDG_RUNTIME_DIR", "")
    return Places(
        home,
        f"{xdg('XDG_CONFIG_HOME', '.config')}/config.toml",
        f"{xdg('XDG_STATE_HOME', '.local/state')}/logs",
        f"{runtime}/strongroom/daemon.sock" if runtime.startswith("/") else f"{home}/daemon.sock",
        tuple(name for name in _XDG_VARIABLES if environ.get(name, "").startswith("/")),
    )
