"""Start the full screen, where Textual is installed and there is a terminal.

Rule: a daemon that has to be started is begun first, then the connection; libraries are imported while they are made.
"""

import sys
from importlib.util import find_spec
from typing import Final

from supervisor.clients.connection.spawn import Starting, background_if_none_runs, forget
from supervisor.clients.console.options import ConsoleOptions
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.system.garbage import collect_from_here

_DUMB: Final = ("", "dumb", "unknown")


def run_tui(settings: Settings, options: ConsoleOptions, theme: str | None, early: Starting | None = None) -> int:
    """Run the full screen until the person leaves; return the exit code. `early` is a daemon that was begun for it.

    Raises:
        ConfigError: Textual is missing, or there is no terminal.
        StrongroomError: the session cannot be opened.
    """
    if why := _missing(settings):
        forget(early)
        raise ConfigError(why)
    starting = background_if_none_runs(settings, early)
    from supervisor.clients.console.daemon_link import Connecting

    connecting = Connecting(settings, starting)
    from supervisor.clients.tui.full_screen import run_full_screen

    collect_from_here()
    return run_full_screen(settings, options, connecting, theme)


def _missing(settings: Settings) -> str:
    """Return what the full screen lacks, and what to do; "" for nothing."""
    if find_spec("textual") is None:
        return (
            "The full screen needs Textual, which is not installed: run "
            f"`{sys.executable} -m pip install 'textual>=8.2,<9'`, or use `strongroom console`."
        )
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return "The full screen needs a terminal: use `strongroom console --plain` for pipes and files."
    if settings.variable("TERM") in _DUMB:
        return "The full screen needs a terminal that can draw anywhere (TERM): use `strongroom console`."
    return ""
