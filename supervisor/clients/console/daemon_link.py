"""The console's connection in an event loop: one at a time, made anew when it is needed.

Rule: events of a closed connection are dropped. The first connection is started before there is an event loop, so that
libraries are imported while it is made.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import LinkEvent, Listener
from supervisor.clients.connection.start import ConnectedDaemon, connect
from supervisor.config.settings import Settings

_T = TypeVar("_T")


def in_thread(work: Callable[[], _T]) -> "Future[_T]":
    """Do `work` in a thread that the program's end does not wait for."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class EventBuffer:
    """Holds the events of one connection until there is an event loop to hand them to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[LinkEvent] = []
        self._listener: Listener | None = None

    def bind(self, listener: Listener) -> None:
        """Hand over what waits, and everything from here on."""
        with self._lock:
            self._listener = listener
            for event in self._waiting:
                listener(event)

    def hear(self, event: LinkEvent) -> None:
        """Hand an event over, or let it wait."""
        with self._lock:
            (self._waiting.append if self._listener is None else self._listener)(event)


class Connecting:
    """A connection that is being made, in a thread of its own, from now on."""

    def __init__(self, settings: Settings) -> None:
        self.events = EventBuffer()
        self.future: Future[ConnectedDaemon] = in_thread(lambda: connect(settings, self.events.hear, "console"))


class DaemonLink:
    """The connection there is, if any.

    Args:
        connecting: the first connection.
        listener: is told, in the event loop, the events of the connection that holds.
    """

    def __init__(self, settings: Settings, connecting: Connecting, listener: Listener) -> None:
        self._settings = settings
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._connecting: Connecting | None = connecting
        self._connected: ConnectedDaemon | None = None
        self._events: EventBuffer | None = None

    @property
    def link(self) -> Link | None:
        """The connection."""
        return self._connected.link if self._connected is not None else None

    async def connect(self) -> tuple[str, ...]:
        """Connect, starting a daemon if need be; return what the person should know.

        Raises:
            StrongroomError: there is none, and none can be started.
        """
        connecting, self._connecting = self._connecting or Connecting(self._settings), None
        events = self._events = connecting.events
        self._connected = await asyncio.wrap_future(connecting.future)

        def in_loop(event: LinkEvent) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(hear, event)

        def hear(event: LinkEvent) -> None:
            if self._events is events:
                self._listener(event)

        events.bind(in_loop)
        return self._connected.notices

    def disconnect(self, *, wait: bool = False) -> None:
        """Let go of the connection, and wait for its end or not; what runs in the daemon goes on."""
        connected, self._connected, self._events = self._connected, None, None
        if connected is not None and wait:
            connected.close()
        elif connected is not None:
            in_thread(connected.close)
