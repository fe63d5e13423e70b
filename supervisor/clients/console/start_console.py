"""Start the console: on a terminal with prompt_toolkit, else with plain lines.

Rule: a daemon that has to be started is begun first, then the connection; libraries are imported while they are made.
"""

import asyncio
import sys

from supervisor.clients.connection.spawn import Starting, background_if_none_runs
from supervisor.clients.console.options import ConsoleOptions
from supervisor.config.settings import Settings
from supervisor.system.garbage import collect_from_here


def run_console(settings: Settings, options: ConsoleOptions, early: Starting | None = None) -> int:
    """Run the console until the person leaves; return the exit code. `early` is a daemon that was begun for it.

    Raises:
        StrongroomError: the session cannot be opened.
        KeyboardInterrupt: without a terminal, Ctrl-C where no turn runs.
    """
    starting = background_if_none_runs(settings, early)
    from supervisor.clients.console.daemon_link import Connecting

    connecting = Connecting(settings, starting)
    terminals = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if terminals and not options.plain:
        from prompt_toolkit.utils import is_dumb_terminal

        if not is_dumb_terminal():
            from supervisor.clients.console.terminal import run_terminal

            collect_from_here()
            return asyncio.run(run_terminal(settings, options, connecting))
    from supervisor.clients.console.plain import run_plain

    collect_from_here()
    return asyncio.run(run_plain(settings, options, connecting))
