"""A connection that is made in a thread, while the console goes on.

Rule: the first one is started before there is an event loop, so that libraries are imported while it is made.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from supervisor.clients.connection.link_events import LinkEvent, Listener
from supervisor.clients.connection.spawn import StartingBackground
from supervisor.clients.connection.start import ConnectedDaemon, connect
from supervisor.config.settings import Settings

_T = TypeVar("_T")


def in_thread(work: Callable[[], _T]) -> "Future[_T]":
    """Do `work` in a thread: the program's end does not wait for it, and a wait for it may be cancelled."""
    future: Future[_T] = Future()
    future.set_running_or_notify_cancel()  # from now on no one can cancel it, and its thread can say what came of it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class Connecting:
    """A connection that is being made, in a thread of its own, from now on; its events wait for an event loop."""

    def __init__(self, settings: Settings, starting: StartingBackground | None = None) -> None:
        self._lock = threading.Lock()
        self._waiting: list[LinkEvent] = []
        self._listener: Listener = self._waiting.append
        self.future: Future[ConnectedDaemon] = in_thread(
            lambda: connect(settings, self._hear, "console", starting=starting)
        )

    def bind(self, listener: Listener) -> None:
        """Hand over what waits, and everything from here on."""
        with self._lock:
            self._listener = listener
            for event in self._waiting:
                listener(event)

    def _hear(self, event: LinkEvent) -> None:
        with self._lock:
            self._listener(event)
