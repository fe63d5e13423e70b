"""Start the console: on a terminal with prompt_toolkit, else with plain lines.

Rule: the connection is begun first, so that the libraries are imported while it is made.
"""

import sys

from supervisor.clients.console.daemon_link import Connecting
from supervisor.clients.console.options import ConsoleOptions
from supervisor.config.settings import Settings


def run_console(settings: Settings, options: ConsoleOptions) -> int:
    """Run the console until the person leaves; return the exit code.

    Raises:
        StrongroomError: the session cannot be opened.
        KeyboardInterrupt: without a terminal, Ctrl-C where no turn runs.
    """
    connecting = Connecting(settings)
    terminals = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if terminals and not options.plain:
        from prompt_toolkit.utils import is_dumb_terminal

        if not is_dumb_terminal():
            from supervisor.clients.console.terminal import run_terminal

            return run_terminal(settings, options, connecting)
    from supervisor.clients.console.plain import run_plain

    return run_plain(settings, options, connecting)
