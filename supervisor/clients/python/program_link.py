"""The connection of one program to the daemon: its sessions' events go to their queues; a lost one is made anew.

Rule: requests of a session end in its queue, behind all the events before their answer.
"""

from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import ConnectionLost, LinkEvent, PermissionPrompt, PromptWithdrawn
from supervisor.clients.connection.start import ConnectedDaemon, connect
from supervisor.clients.console.daemon_link import in_thread
from supervisor.clients.python.event_queue import EventQueue
from supervisor.clients.python.waits import Wait
from supervisor.config.settings import Settings

_T = TypeVar("_T")
_CLIENT: Final = "python"


class SentRequest:
    """A request of a session that was sent, whose end comes in the session's queue."""

    def __init__(self, link: Link, future: "Future[bytes]") -> None:
        self.future = future
        self.cancelled = False
        self._link = link

    @property
    def runs(self) -> bool:
        """Whether it has no answer yet."""
        return not self.future.done()

    def cancel(self) -> None:
        """Cancel it, unless it has its answer; that will say so."""
        self.cancelled = True
        self._link.abandon(self.future)

    def abandon(self) -> None:
        """Do the same a little later, in any thread and with any lock."""
        self.cancelled = True
        if self.runs:
            with suppress(RuntimeError):  # the interpreter ends, and no thread can be begun
                in_thread(self.cancel)


class ProgramLink:
    """The connection. Its waits are the caller's."""

    def __init__(self, settings: Settings, wait: Wait) -> None:
        self._settings = settings
        self.wait = wait
        self.notices: list[str] = []
        """What a person should know of the daemon."""
        self._queues: dict[str, EventQueue] = {}
        self._connected: ConnectedDaemon | None = None

    async def link(self) -> Link:
        """Return the connection, made anew if it was lost.

        Raises:
            StrongroomError: the daemon cannot be reached or started.
        """
        if self._connected is None or self._connected.link.ended:
            self.drop()
            making = in_thread(lambda: connect(self._settings, self._hear, _CLIENT))
            try:
                self._connected = await self.wait.result(making)
            except BaseException:
                making.add_done_callback(_close)
                raise
            self.notices += self._connected.notices
        return self._connected.link

    async def request(self, method: str, params: Any, result: type[_T]) -> _T:
        """Send a request and wait for its answer.

        Raises:
            StrongroomError: as `Link.request`.
        """
        link = await self.link()
        return decoded(await self.wait.result(link.submit(method, params)), result)

    def queue(self, session: str) -> EventQueue:
        """Return the queue of a session's events, kept from here on."""
        return self._queues.setdefault(session, EventQueue())

    def submit(self, link: Link, session: str, method: str, params: Any) -> SentRequest:
        """Send a request of a session, whose events are waited for from here on."""
        queue = self.queue(session)
        number = queue.begin()
        return SentRequest(link, link.submit(method, params, lambda _future: queue.end(number)))

    def drop(self) -> None:
        """Leave the connection; what runs in the daemon goes on."""
        connected, self._connected = self._connected, None
        if connected is not None:
            connected.close()

    def _hear(self, event: LinkEvent) -> None:
        match event:
            case ConnectionLost():
                pass  # whoever waits for an answer is told by that
            case PromptWithdrawn(prompt):
                self._queues.get(prompt.params.session_id, EventQueue()).withdraw(prompt)
            case PermissionPrompt(params=params) if params.session_id not in self._queues:
                event.decline()
            case PermissionPrompt():
                self._queues[event.params.session_id].put(event)
            case _ if event.session_id in self._queues:
                self._queues[event.session_id].put(event)


def _close(making: "Future[ConnectedDaemon]") -> None:
    if making.exception() is None:
        making.result().close()
