"""`strongroom console`: a person talks to an agent, sees what it does, and decides.

Rule: what is shown is decided in pure modules: `view` folds what the daemon says into `items`, and `text`, `bar`,
`blocks`, `review` and `complete` make of it what is seen. Two edges show it: `terminal` (prompt_toolkit, with
`application`, `bottom`, `keys`, `layout`, `line`, `reviews`, `scrollback`; rich in `markdown` alone) and `plain`, which
imports neither.

    keys, lines -> terminal | plain -> commands, driver, turns, wire <==acp==> daemon
                         ^                  |
                         +---- items <---- view
"""

import sys
from typing import TYPE_CHECKING

from supervisor.clients.console.options import ConsoleOptions

if TYPE_CHECKING:
    from supervisor.config.settings import Settings

__all__ = ["ConsoleOptions", "run"]


def run(settings: "Settings", options: ConsoleOptions) -> int:
    """Run the console until the person leaves; return the exit code.

    Raises:
        StrongroomError: the session cannot be opened.
        KeyboardInterrupt: without a terminal, Ctrl-C where no turn runs.
    """
    from supervisor.clients.console.daemon_link import Connecting

    connecting = Connecting(settings)  # while it connects, the libraries are imported
    terminals = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if terminals and not options.plain:
        from prompt_toolkit.utils import is_dumb_terminal

        if not is_dumb_terminal():
            from supervisor.clients.console.terminal import run_terminal

            return run_terminal(settings, options, connecting)
    from supervisor.clients.console.plain import run_plain

    return run_plain(settings, options, connecting)
