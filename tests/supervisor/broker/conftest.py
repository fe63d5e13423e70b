"""A broker, workers that speak with it, and a server behind it; nothing of them is left after a test."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest
import trio

from supervisor.broker.broker import Broker
from tests.authority import Authority
from tests.supervisor.broker.harness import Worker
from tests.web_server import WebServer


class OpenWorker(Protocol):
    def __call__(self, broker: Broker, running: Callable[[], int] = ...) -> Worker:
        """Let the broker serve one more worker."""


@pytest.fixture(scope="session")
def plain_server() -> Iterator[WebServer]:
    with WebServer(Authority(), plain=True) as server:
        yield server


@pytest.fixture
def server(plain_server: WebServer) -> WebServer:
    plain_server.play({})
    return plain_server


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def open_worker(nursery: trio.Nursery, ends: ExitStack) -> OpenWorker:
    def open_one(broker: Broker, running: Callable[[], int] = lambda: 1) -> Worker:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ends.enter_context(ours)
        ends.enter_context(theirs)
        nursery.start_soon(broker.serve, ours, running)
        return Worker(theirs)

    return open_one
