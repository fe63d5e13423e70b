"""The worker's side of the talk with the broker, from which every connection comes.

Rule: one question, one answer, in order, each a datagram (wire.Connect, wire.Brokered). An answer that comes after
its question was given up is thrown away, connection and all: it never becomes the answer to the next one.
"""

import array  # noqa: F401 - socket.recv_fds imports it, which a locked worker cannot
import os
import select
import socket

from workers.errors import ToolError
from workers.web.deadline import Deadline
from workers.wire import frames, messages


class BrokerClient:
    """The worker's end of the socket. Owns `descriptor`.

    Raises:
        ValueError: there is none.
    """

    def __init__(self, descriptor: int) -> None:
        if descriptor < 0:
            raise ValueError("there is no broker to ask for connections")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=descriptor)
        self._owed = 0

    def connect(self, host: str, port: int, deadline: Deadline) -> int:
        """Return the descriptor of a connection to `host`, which the caller closes.

        Raises:
            ToolError: the broker declines (with its kind), does not answer in time (`timeout`), or is gone.
        """
        deadline.left()
        try:
            os.write(self._socket.fileno(), frames.datagram(messages.Connect(host, port)))
        except OSError as error:
            raise _gone() from error
        self._owed += 1
        answer, descriptor = self._receive(deadline)
        while self._owed:
            if descriptor is not None:
                os.close(descriptor)
            answer, descriptor = self._receive(deadline)
        if isinstance(answer, messages.Declined):
            if descriptor is not None:
                os.close(descriptor)
            raise ToolError(answer.kind, answer.message, host=host)
        if descriptor is None:
            raise ToolError("resource_limit", f"The connection to {host} could not be received. Try again.")
        return descriptor

    def _receive(self, deadline: Deadline) -> tuple[messages.Brokered, int | None]:
        wait(self._socket.fileno(), select.POLLIN, deadline)
        flags = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, messages.BROKER_LIMIT, 1, flags)
        except OSError as error:
            raise _gone() from error
        if not data:
            raise _gone()
        self._owed -= 1
        return frames.decode_brokered(data), descriptors[0] if descriptors else None


def wait(descriptor: int, event: int, deadline: Deadline) -> None:
    """Wait until a descriptor is ready for `event` (POLLIN or POLLOUT), or has failed.

    Raises:
        ToolError: `timeout`.
    """
    poll = select.poll()
    poll.register(descriptor, event)
    while not poll.poll(deadline.left() * 1000):
        pass


def _gone() -> ToolError:
    return ToolError("fetch_failed", "No connection can be made at the moment. Try again later.")
