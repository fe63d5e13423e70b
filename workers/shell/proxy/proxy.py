"""The proxy beside a command: the one thing in its network namespace, a process of its own that dies with the command.

Rule: both sides are taken for hostile, and everything is bounded: clients, their heads, what waits in either direction,
and how often the broker is asked. It can open nothing, and connect nowhere: a connection comes from the broker, which
judges the place once more, and the process holds nothing else. Whatever a command does to it ends with that command.

    command -> 127.0.0.1:port -> head -> broker -> connection: bytes both ways, until both ends have said all
"""

import array  # noqa: F401 - socket.recv_fds imports it, which a locked process cannot
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from workers.shell.proxy.proxy_request import OPEN, ProxyDeclined, ProxyRequest, parse_request, proxy_response
from workers.wire import frames, messages

CLIENTS: Final = 64
"""Connections of the command at the same time; more wait until one ends."""

MOST_REQUESTS: Final = 512
"""Connections that one command may make: so many the broker makes for one call."""

BUFFER: Final = 2**16
"""Bytes that wait in one direction of one connection."""

_NOW: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
_GONE: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL


class ProxyEnd:
    """One side of a connection."""

    def __init__(self, socket: socket.socket | None = None) -> None:
        self.socket = socket
        self.waiting = bytearray()
        """For this side, from the other one."""
        self.ended = False
        """Nothing more comes from there."""
        self.told = False
        """It has been told that nothing more comes from the other one."""


class ProxyClient:
    """One connection of the command, and where it leads once it does."""

    def __init__(self, near: socket.socket) -> None:
        self.near = ProxyEnd(near)
        self.far = ProxyEnd()
        self.wanted: ProxyRequest | None = None

    def ends(self) -> tuple[tuple[ProxyEnd, ProxyEnd], tuple[ProxyEnd, ProxyEnd]]:
        """Return both sides, each with the other one."""
        return (self.far, self.near), (self.near, self.far)

    def close(self) -> None:
        for end, _other in self.ends():
            if end.socket is not None:
                end.socket.close()


class Proxy:
    """Serves one command, until the process is killed.

    Args:
        listener: where the command's connections arrive; does not block.
        broker: the worker's end of its socket to the broker.
        allowed: the places of the profile's `network`.
        tell: takes each place that was declined.
        counts: two for each place, bytes up and down, and one more for the place that wanted to send too much.
        upload: bytes that may be sent, to all places together.
    """

    def __init__(
        self,
        listener: socket.socket,
        broker: socket.socket,
        allowed: Sequence[str],
        tell: Callable[[str], None],
        counts: "memoryview[int]",
        upload: int,
    ) -> None:
        self._listener = listener
        self._broker = broker
        self._allowed = allowed
        self._tell = tell
        self._counts = counts
        self._left = upload
        self._clients: set[ProxyClient] = set()
        self._waiting: deque[ProxyClient] = deque()
        self._requested: ProxyClient | None = None
        self._number = int.from_bytes(os.urandom(6), "big")
        self._requests = 0

    def serve(self) -> None:
        while True:
            self._turn()

    def _turn(self) -> None:
        poll = select.poll()
        if len(self._clients) < CLIENTS:
            poll.register(self._listener, select.POLLIN)
        poll.register(self._broker, select.POLLIN)
        ends: dict[int, tuple[ProxyClient, ProxyEnd, ProxyEnd]] = {}
        for client in self._clients:
            for end, other in client.ends():
                if end.socket is not None and (events := _wanted(client, end, other)):
                    ends[end.socket.fileno()] = client, end, other
                    poll.register(end.socket, events)
        for descriptor, event in poll.poll():
            if descriptor == self._listener.fileno():
                self._accept()
            elif descriptor == self._broker.fileno():
                self._take_answer()
            elif (found := ends[descriptor])[0] in self._clients:
                try:
                    self._move(*found, event)
                except OSError:
                    self._end(found[0])
        self._request_next()

    def _accept(self) -> None:
        try:
            near, _ = self._listener.accept()
        except OSError:
            return
        self._clients.add(ProxyClient(near))

    def _move(self, client: ProxyClient, end: ProxyEnd, other: ProxyEnd, event: int) -> None:
        """Do what one end is ready for."""
        try:
            self._move_bytes(client, end, other, event)
        except OSError:
            if end is client.near:
                raise
            end.ended = end.told = other.ended = True  # what it has said until then still goes to the command
            end.waiting.clear()
        if client not in self._clients:
            return
        if client.wanted is None:
            self._read_head(client)
        self._pass_ends_on(client)

    def _move_bytes(self, client: ProxyClient, end: ProxyEnd, other: ProxyEnd, event: int) -> None:
        assert end.socket is not None, "it was polled"
        if event & select.POLLOUT:
            if end is client.far and not self._left:
                self._cut(client)
                return
            sent = end.socket.send(end.waiting[: self._left] if end is client.far else end.waiting, _NOW)
            del end.waiting[:sent]
            self._count(client, 0, sent if end is client.far else 0)
        if event & (select.POLLIN | _GONE) and not end.ended:
            data = end.socket.recv(BUFFER - len(other.waiting), _NOW)
            other.waiting += data
            end.ended = not data
            self._count(client, 1, len(data) if end is client.far else 0)
        elif event & _GONE:
            raise ConnectionResetError

    def _count(self, client: ProxyClient, direction: int, size: int) -> None:
        if client.wanted is not None and size:
            self._counts[2 * self._allowed.index(client.wanted.place) + direction] += size
            self._left -= 0 if direction else size

    def _cut(self, client: ProxyClient) -> None:
        """End a connection that wants to send more than it may."""
        assert client.wanted is not None, "it leads somewhere"
        self._counts[-1] = 1 + self._allowed.index(client.wanted.place)
        self._end(client)

    def _pass_ends_on(self, client: ProxyClient) -> None:
        for end, other in client.ends():
            if other.ended and not end.waiting and end.socket is not None and not end.told:
                end.socket.shutdown(socket.SHUT_WR)
                end.told = True
        unheard = client.near.ended and client.wanted is None
        if unheard or (client.near.told and (client.far.told or client.far.socket is None)):
            self._end(client)

    def _read_head(self, client: ProxyClient) -> None:
        try:
            client.wanted = parse_request(bytes(client.far.waiting), self._allowed)
        except ProxyDeclined as declined:
            if declined.place:
                self._tell(declined.place)
            self._decline(client, declined.status, str(declined))
            return
        if client.wanted is not None:
            client.far.waiting[:] = client.wanted.first
            self._waiting.append(client)

    def _request_next(self) -> None:
        """Ask the broker for the next one, if it owes no answer."""
        while self._waiting and self._requested is None:
            client = self._waiting.popleft()
            if client not in self._clients or client.wanted is None:
                continue
            if self._requests >= MOST_REQUESTS:
                self._decline(client, 503, f"This command has made all of its {MOST_REQUESTS} connections.")
                continue
            self._requests += 1
            self._number += 1
            self._requested = client
            request = messages.Connect(client.wanted.host, client.wanted.port, self._number)
            try:
                self._broker.send(frames.datagram(request), _NOW)
            except OSError:
                self._requested = None
                self._decline(client, 502, "No connection can be made at the moment.")

    def _take_answer(self) -> None:
        flags = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
        data, descriptors, _, _ = socket.recv_fds(self._broker, messages.BROKER_LIMIT, 1, flags)
        if not data:  # the worker is about to end as well
            raise SystemExit(0)
        far = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=descriptors[0]) if descriptors else None
        said = frames.decode_brokered(data)
        if said.id != self._number or self._requested is None:  # of a command before this one
            if far is not None:
                far.close()
            return
        client, self._requested = self._requested, None
        if client not in self._clients or client.wanted is None:
            if far is not None:
                far.close()
        elif isinstance(said, messages.Declined) or far is None:
            message = said.message if isinstance(said, messages.Declined) else "The connection could not be received."
            self._tell(f"{client.wanted.place} ({message})")
            self._decline(client, 502, message)
        else:
            client.far.socket = far
            client.near.waiting += OPEN if client.wanted.tunnel else b""

    def _decline(self, client: ProxyClient, status: int, message: str) -> None:
        """Answer instead of the place; the connection ends when that has been read."""
        client.wanted = client.wanted or ProxyRequest("", 0, b"", tunnel=False)
        client.far.waiting.clear()
        client.near.waiting += proxy_response(status, message)
        client.far.ended = True

    def _end(self, client: ProxyClient) -> None:
        self._clients.discard(client)
        client.close()


def _wanted(client: ProxyClient, end: ProxyEnd, other: ProxyEnd) -> int:
    """Return what one end is waited for: to be read where there is room, to be written where there is something."""
    leads = client.far.socket is not None or client.wanted is None
    reads = not end.ended and len(other.waiting) < BUFFER and leads
    return (select.POLLIN if reads else 0) | (select.POLLOUT if end.waiting else 0)
