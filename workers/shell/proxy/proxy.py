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
from collections.abc import Callable, Collection
from typing import Final

from workers.shell.proxy.proxy_request import OPEN, ProxyDeclined, ProxyRequest, parse_request, proxy_response
from workers.wire import frames, messages

CLIENTS: Final = 64
"""Connections of the command at the same time; more wait until one ends."""

MOST_REQUESTS: Final = 16
"""Connections that one command may make: so many the broker makes for one call."""

BUFFER: Final = 2**16
"""Bytes that wait in one direction of one connection."""

_NOW: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
_GONE: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL


class ProxyClient:
    """One connection of the command, and where it leads once it does."""

    def __init__(self, near: socket.socket) -> None:
        self.near = near
        self.far: socket.socket | None = None
        self.wanted: ProxyRequest | None = None
        self.up = bytearray()
        """From the command, for the place."""
        self.down = bytearray()
        self.near_ended = False
        """Nothing more comes from there."""
        self.far_ended = False
        self.far_told = False
        """The other side has been told so."""
        self.near_told = False

    def close(self) -> None:
        """Close both."""
        self.near.close()
        if self.far is not None:
            self.far.close()


class Proxy:
    """Serves one command, until the process is killed.

    Args:
        listener: where the command's connections arrive; does not block.
        broker: the worker's end of its socket to the broker.
        allowed: the places of the profile's `network`.
        tell: takes each place that was declined.
    """

    def __init__(
        self, listener: socket.socket, broker: socket.socket, allowed: Collection[str], tell: Callable[[str], None]
    ) -> None:
        self._listener = listener
        self._broker = broker
        self._allowed = allowed
        self._tell = tell
        self._clients: set[ProxyClient] = set()
        self._waiting: deque[ProxyClient] = deque()
        self._requested: ProxyClient | None = None
        self._number = int.from_bytes(os.urandom(6), "big")
        self._requests = 0

    def serve(self) -> None:
        """Serve for ever."""
        while True:
            self._turn()

    def _turn(self) -> None:
        poll = select.poll()
        if len(self._clients) < CLIENTS:
            poll.register(self._listener, select.POLLIN)
        poll.register(self._broker, select.POLLIN)
        ends: dict[int, tuple[ProxyClient, bool]] = {}
        for client in self._clients:
            for end, near in ((client.near, True), (client.far, False)):
                if end is not None and (events := _wanted(client, near=near)):
                    ends[end.fileno()] = client, near
                    poll.register(end, events)
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

    def _move(self, client: ProxyClient, near: bool, event: int) -> None:
        """Do what one end is ready for."""
        if near:
            if event & select.POLLOUT:
                del client.down[: client.near.send(client.down, _NOW)]
            if event & (select.POLLIN | _GONE) and not client.near_ended:
                data = client.near.recv(BUFFER - len(client.up), _NOW)
                client.up += data
                client.near_ended = not data
                if client.wanted is None:
                    self._read_head(client)
            elif event & _GONE:
                raise ConnectionResetError
        elif client.far is not None:
            try:
                _move_far(client, client.far, event)
            except OSError:  # what it has said until then still goes to the command
                client.far_ended = client.far_told = client.near_ended = True
                client.up.clear()
        self._pass_ends_on(client)

    def _pass_ends_on(self, client: ProxyClient) -> None:
        if client.near_ended and not client.up and client.far is not None and not client.far_told:
            client.far.shutdown(socket.SHUT_WR)
            client.far_told = True
        if client.far_ended and not client.down and not client.near_told:
            client.near.shutdown(socket.SHUT_WR)
            client.near_told = True
        unheard = client.near_ended and client.wanted is None
        if unheard or (client.near_told and (client.far_told or client.far is None)):
            self._end(client)

    def _read_head(self, client: ProxyClient) -> None:
        try:
            client.wanted = parse_request(bytes(client.up), self._allowed)
        except ProxyDeclined as declined:
            if declined.place:
                self._tell(declined.place)
            self._decline(client, declined.status, str(declined))
            return
        if client.wanted is not None:
            client.up[:] = client.wanted.first
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
            client.far = far
            client.down += OPEN if client.wanted.tunnel else b""

    def _decline(self, client: ProxyClient, status: int, message: str) -> None:
        """Answer instead of the place; the connection ends when that has been read."""
        client.wanted = client.wanted or ProxyRequest("", 0, b"", tunnel=False)
        client.up.clear()
        client.down += proxy_response(status, message)
        client.far_ended = True

    def _end(self, client: ProxyClient) -> None:
        self._clients.discard(client)
        client.close()


def _move_far(client: ProxyClient, far: socket.socket, event: int) -> None:
    if event & select.POLLOUT:
        del client.up[: far.send(client.up, _NOW)]
    if event & (select.POLLIN | _GONE) and not client.far_ended:
        data = far.recv(BUFFER - len(client.down), _NOW)
        client.down += data
        client.far_ended = not data
    elif event & _GONE:
        raise ConnectionResetError


def _wanted(client: ProxyClient, *, near: bool) -> int:
    """Return what one end is waited for: to be read where there is room, to be written where there is something."""
    mine, others, ended = (
        (client.down, client.up, client.near_ended) if near else (client.up, client.down, client.far_ended)
    )
    reads = not ended and len(others) < BUFFER and (client.far is not None or client.wanted is None)
    return (select.POLLIN if reads else 0) | (select.POLLOUT if mine else 0)
