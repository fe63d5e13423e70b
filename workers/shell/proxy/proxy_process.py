"""The proxy of one command, as the worker starts it: a process of the worker's namespaces, with locks of its own.

Rule: it is there before the command, and what ends the command ends it (`watch.end_all`). The command is told where it
listens by its environment, as programs have agreed on, and may connect to nothing else.
"""

import mmap
import os
import select
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from workers.changes.effects import PLACES, UPLOAD, Traffic
from workers.confine.confinements import PROXY
from workers.confine.steps import Prepared, ProtectionUnavailable, confine
from workers.shell.command_runner import CommandRunner, Network
from workers.shell.proxy.proxy import Proxy
from workers.shell.sandbox.private_root import HOST_NAME

_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 128
_LOCKED: Final = b"+"
_CHUNK: Final = 2**16

_ADDRESSES: Final = (
    *("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
    *("npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY"),
)
"""Variables that hold a proxy's address."""
_PAST_IT: Final = f"localhost,{HOST_NAME},{_HOST},127.0.0.0/8,0.0.0.0,::1"
"""Where the command reaches its own servers: the proxy would look outside. Not said where an allowed place is there."""


class ProxyUnavailable(Exception):
    """It could not be had; `feature` names the protection that it would lack, if that is why."""

    def __init__(self, message: str, feature: str = "") -> None:
        super().__init__(message)
        self.feature = feature


class ProxyProcess:
    """A proxy that runs.

    Args:
        engine: for a command without a network.
        network: of the profile.
        upload: bytes that it may send.

    Raises:
        ProxyUnavailable: it could not be locked in.
        OSError: no process, socket or descriptor is to be had.
    """

    def __init__(self, engine: CommandRunner, network: Network, upload: int = UPLOAD) -> None:
        self._places, size = network.places, 8 * (2 * len(network.places) + 1)
        self._counts = memoryview(mmap.mmap(-1, size)).cast("Q")  # the proxy is killed, so it cannot tell at the end
        with socket.create_server((_HOST, 0), backlog=_BACKLOG) as listener:
            listener.setblocking(False)
            port = listener.getsockname()[1]
            self._report, to_worker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            child = os.fork()
            if child == 0:
                try:
                    _serve(engine, network, listener, to_worker, self._counts, upload)
                finally:
                    os._exit(0)
            os.close(to_worker)
        self._wait()
        told = {**engine.environment, **_environment(port)}
        ports: tuple[int, ...] | None = (port,)
        if engine.ports is None:
            ports = None
            told |= {} if network.local_ports else dict.fromkeys(("no_proxy", "NO_PROXY"), _PAST_IT)
        self.engine: Final = msgspec.structs.replace(engine, filter=network.filter, environment=told, ports=ports)
        """For the command."""

    def declined(self) -> list[str]:
        """Return the places that the command was declined, once everything has been killed, in order."""
        parts = []
        with suppress(BlockingIOError):
            while part := os.read(self._report, _CHUNK):
                parts.append(part)
        return b"".join(parts).decode("utf-8", "replace").splitlines()

    def traffic(self) -> tuple[Traffic, ...]:
        """Return what was sent where, and what came back, once everything has been killed."""
        all_places = (
            Traffic(place, self._counts[2 * at], self._counts[2 * at + 1], self._counts[-1] == at + 1)
            for at, place in enumerate(self._places)
        )
        return tuple(each for each in all_places if each.up or each.down)[:PLACES]

    def close(self) -> None:
        """Let go of what it says; the process is the caller's to kill."""
        os.close(self._report)

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._report, select.POLLIN)
        poll.poll()
        if (said := os.read(self._report, 1)) != _LOCKED:
            poll.poll()  # the rest, or its end
            feature, _, message = (said.decode() + "".join(self.declined())).partition(":")
            self.close()
            raise ProxyUnavailable(f"the proxy cannot be locked in: {message}", feature)


def _serve(
    engine: CommandRunner,
    network: Network,
    listener: socket.socket,
    to_worker: int,
    counts: "memoryview[int]",
    upload: int,
) -> None:
    """Be the proxy."""

    def tell(place: str) -> None:
        with suppress(BlockingIOError):  # it is full
            os.write(to_worker, " ".join(place.split()).encode() + b"\n")

    broker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=engine.start.broker_fd)
    keep = listener.fileno(), broker.fileno(), to_worker
    try:
        confine(PROXY, engine.start, keep, prepared=Prepared(steps=network.locks))
    except (ProtectionUnavailable, OSError) as error:
        tell(f"{getattr(error, 'feature', '')}:{error}")
        return
    os.write(to_worker, _LOCKED)
    Proxy(listener, broker, network.places, tell, counts, upload).serve()


def _environment(port: int) -> Mapping[str, str]:
    """Return what a command is told of its proxy."""
    return {
        **dict.fromkeys(_ADDRESSES, f"http://{_HOST}:{port}"),
        "NODE_USE_ENV_PROXY": "1",
        "npm_config_prefer_offline": "false",
    }
