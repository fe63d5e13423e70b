"""`strongroom console`: a person talks to an agent, sees what it does, and decides.

Rule: what is shown is decided in pure modules (`view`, `text`, `bar`, `blocks`, `review`, `complete`); `driver` speaks
with the daemon, `commands` are what a slash begins. Two edges show it all: `terminal` (the only user of prompt_toolkit,
with `keys` and `layout`; `markdown` is rich's) and `plain`, which imports neither.

    keys, lines -> terminal | plain -> commands, driver <==acp==> daemon
                         ^                  |
                         +---- items <---- view
"""

import os
import sys
from typing import TYPE_CHECKING

from supervisor.clients.console.options import ConsoleOptions

if TYPE_CHECKING:
    from supervisor.config import Settings

__all__ = ["ConsoleOptions", "run"]


def run(settings: "Settings", options: ConsoleOptions) -> int:
    """Run the console until the person leaves; return the exit code.

    Raises:
        StrongroomError: the session cannot be opened.
        KeyboardInterrupt: without a terminal, Ctrl-C where no turn runs.
    """
    from supervisor.clients.console.driver import Connecting

    connecting = Connecting(settings)  # while it connects, the libraries are imported
    if not options.plain and os.isatty(0) and os.isatty(1) and sys.stdin is not None and sys.stdout is not None:
        from prompt_toolkit.utils import is_dumb_terminal

        if not is_dumb_terminal():
            from supervisor.clients.console.terminal import run_terminal

            return run_terminal(settings, options, connecting)
    from supervisor.clients.console.plain import run_plain

    return run_plain(settings, options, connecting)
