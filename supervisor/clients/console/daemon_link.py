"""The console's connection, in an event loop: one at a time, made anew when it is wanted.

Rule: what is heard of a connection that was given up is not heard any more. The first connection is begun before there
is an event loop, so that libraries are imported while it is made.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link import Link, PermissionPrompt
from supervisor.clients.connection.start import ConnectedDaemon, connect
from supervisor.config.settings import Settings

_T = TypeVar("_T")
Heard = Callable[[str, Any], None]
"""Takes what is heard: the name of the listener's method, and its argument."""


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


class Ear:
    """Listens to one connection, and hands over to the event loop once there is one; what comes before waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, Any]] = []
        self._tell: Heard | None = None

    def bind(self, tell: Heard) -> None:
        """Hand over everything from here on."""
        with self._lock:
            self._tell = tell
            for kind, value in self._waiting:
                tell(kind, value)

    def _hear(self, kind: str, value: Any) -> None:
        with self._lock:
            if self._tell is None:
                self._waiting.append((kind, value))
            else:
                self._tell(kind, value)

    def updated(self, update: schema.SessionUpdate) -> None:
        """Something happened in a session."""
        self._hear("updated", update)

    def entered(self, state: extensions.TurnState) -> None:
        """A turn has entered a state."""
        self._hear("entered", state)

    def asked(self, question: PermissionPrompt) -> None:
        """A person shall decide."""
        self._hear("asked", question)

    def withdrawn(self, question: PermissionPrompt) -> None:
        """A question needs no answer any more."""
        self._hear("withdrawn", question)

    def lost(self, why: str) -> None:
        """The connection has ended."""
        self._hear("lost", why)


class Connecting:
    """A connection that is being made, in a thread of its own, from now on."""

    def __init__(self, settings: Settings) -> None:
        self.ear = Ear()
        self.future: Future[ConnectedDaemon] = in_thread(lambda: connect(settings, self.ear, "console"))


class DaemonLink:
    """The connection there is, if any.

    Args:
        connecting: the first connection.
        heard: is told, in the event loop, what is heard of the connection that holds.
    """

    def __init__(self, settings: Settings, connecting: Connecting, heard: Heard) -> None:
        self._settings = settings
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._connecting: Connecting | None = connecting
        self._connected: ConnectedDaemon | None = None
        self._ear: Ear | None = None

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
        ear = self._ear = connecting.ear
        self._connected = await asyncio.wrap_future(connecting.future)

        def tell(kind: str, value: Any) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(hear, kind, value)

        def hear(kind: str, value: Any) -> None:
            if self._ear is ear:
                self._heard(kind, value)

        ear.bind(tell)
        return self._connected.notices

    def give_up(self) -> None:
        """Let go of the connection; what runs in the daemon goes on."""
        connected, self._connected, self._ear = self._connected, None, None
        if connected is not None:
            in_thread(connected.close)

    def close(self) -> None:
        """Leave."""
        connected, self._connected, self._ear = self._connected, None, None
        if connected is not None:
            connected.close()
