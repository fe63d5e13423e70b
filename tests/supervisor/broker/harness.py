"""A worker's end of the talk with the broker, and fakes of what lies behind it: names and addresses."""

import array
import os
import socket
from collections.abc import Iterable, Mapping
from typing import Final

import trio
from trio.lowlevel import wait_readable, wait_writable

from workers.wire import frames, messages

PUBLIC: Final = "140.82.112.3"
HANG: Final = 60.0
"""Seconds after which a test has failed."""


class Worker:
    """Speaks as a worker does, or as it should not."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self.end = end

    async def say(self, datagram: bytes, *descriptors: int) -> None:
        with trio.fail_after(HANG):
            await wait_writable(self.end)
            socket.send_fds(self.end, [datagram], list(descriptors))

    async def hear(self) -> tuple[messages.Brokered | None, socket.socket | None]:
        """Return an answer and its connection; None at the end."""
        with trio.fail_after(HANG):
            await wait_readable(self.end)
        data, ancillary, _, _ = self.end.recvmsg(messages.BROKER_LIMIT, socket.CMSG_SPACE(64))
        numbers = array.array("i")
        for _, _, content in ancillary:
            numbers.frombytes(content)
        assert len(numbers) < 2
        return frames.decode_brokered(data) if data else None, socket.socket(fileno=numbers[0]) if numbers else None

    async def ask(self, host: str, port: int = 443) -> tuple[messages.Brokered | None, socket.socket | None]:
        await self.say(frames.datagram(messages.Connect(host, port)))
        return await self.hear()

    async def refused(self, host: str, port: int = 443) -> messages.Declined:
        """Ask for what is not granted."""
        return await self.hear_refusal(frames.datagram(messages.Connect(host, port)))

    async def hear_refusal(self, datagram: bytes = b"") -> messages.Declined:
        """Return a refusal, without a connection, of what is said here or was said before."""
        if datagram:
            await self.say(datagram)
        answer, connection = await self.hear()
        assert isinstance(answer, messages.Declined)
        assert connection is None
        return answer

    async def kind(self, host: str, port: int = 443) -> str:
        """Return how a request ends: "connected", or a refusal's kind."""
        answer, connection = await self.ask(host, port)
        if isinstance(answer, messages.Declined):
            assert connection is None
            return answer.kind
        assert connection is not None
        connection.close()
        return "connected"


class Names:
    """A resolver: the answers of each name in their order, the last one again and again; it records the questions."""

    def __init__(self, answers: Mapping[str, list[list[str]]] | None = None) -> None:
        self._answers = {host: iter(turns) for host, turns in (answers or {}).items()}
        self._last: dict[str, list[str]] = {}
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        await trio.lowlevel.checkpoint()
        if host in self._answers:
            self._last[host] = next(self._answers[host], self._last.get(host, []))
        return self._last.get(host, [PUBLIC])


class Roads:
    """Connects any address to one port of the loopback, except those that refuse or are silent."""

    def __init__(self, port: int, refusing: Iterable[str] = (), silent: Iterable[str] = ()) -> None:
        self._port = port
        self._refusing = set(refusing)
        self._silent = set(silent)
        self.taken: list[str] = []

    async def __call__(self, address: str, _port: int) -> socket.socket:
        self.taken.append(address)
        await trio.lowlevel.checkpoint()
        if address in self._refusing:
            raise ConnectionRefusedError(111, "Connection refused")
        if address in self._silent:
            await trio.sleep_forever()
        return socket.create_connection(("127.0.0.1", self._port))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
