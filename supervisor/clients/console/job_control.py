"""Job control: the console gives its terminal back to the shell when it is stopped, and takes it again.

Rule: Ctrl-Z and SIGTSTP stop all that the shell started with the console. SIGSTOP does not ask, so the terminal is
taken back from whatever state the shell has left it in.
"""

import asyncio
import os
import signal

from prompt_toolkit.application import Application, run_in_terminal


class JobControl:
    """Stops and continues one application."""

    def __init__(self, app: Application[None]) -> None:
        self._app = app
        self._suspended = False

    def obey_signals(self) -> None:
        """Handle the signals that stop and continue a job, from now on."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        loop.add_signal_handler(signal.SIGCONT, self._resume)

    def suspend(self) -> None:
        """Stop, with the terminal as it was, until the shell lets it go on."""

        def stop() -> None:
            self._suspended = True
            loop.remove_signal_handler(signal.SIGTSTP)
            os.kill(0, signal.SIGTSTP)  # all that the shell started with us
            loop.add_signal_handler(signal.SIGTSTP, self.suspend)

        loop = asyncio.get_running_loop()
        run_in_terminal(stop)

    def _resume(self) -> None:
        """Take the terminal back from a shell, unless it was given away as it should be."""
        if self._suspended:
            self._suspended = False
            return
        self._app.input.raw_mode().__enter__()
        self._app.renderer.erase()
        self._app.invalidate()
