"""A web worker, a broker that leads every host to one loopback server, and that server."""

import array
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.authority import Authority
from tests.raw_worker import RawWorker, open_worker
from tests.supervisor.command import HANG_GUARD
from tests.web_server import WebServer
from workers.web.web_inputs import WebInputs
from workers.wire import frames, messages

FETCH_S: Final = 27.0
"""All that a call has for its fetch, unless so much of its time has gone by that less is left."""
LEFT_S: Final = 0.3
"""Seconds that a fetch has which is to end by its time."""
LIMITS: Final = messages.Limits(memory_mb=128)
"""Far less than usual: no page may need more."""


class Leading:
    """A broker in a thread: answers each question, with a connection to `server` unless told otherwise.

    To a host in `silent` it says nothing until the next question, as the real one does with one that takes long.
    """

    def __init__(self, server: WebServer) -> None:
        self.server = server
        self.asked: list[tuple[str, int]] = []
        self.refuse: dict[str, messages.Declined] = {}
        self.silent: set[str] = set()
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._unanswered = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(ConnectionResetError, BrokenPipeError):  # of a worker that was killed with an answer unread
            self._answer()

    def _answer(self) -> None:
        while data := self.ours.recv(messages.BROKER_LIMIT):
            try:
                question = frames.decode_connect(data)
            except frames.FrameError:  # an attacker's
                continue
            self.asked.append((question.host, question.port))
            for _ in range(self._unanswered):
                self.ours.send(frames.datagram(messages.Declined("cancelled", "given up")))
            self._unanswered = int(question.host in self.silent)
            if self._unanswered:
                continue
            if declined := self.refuse.get(question.host):
                self.ours.send(frames.datagram(declined))
            else:
                self.hand_over()

    def answer_late(self) -> None:
        """Answer the last question after all."""
        self._unanswered -= 1
        self.hand_over()

    def hand_over(self) -> None:
        """Send a connection to the server."""
        with socket.create_connection((self.server.host, self.server.port)) as connection:
            connection.setblocking(False)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))]
            self.ours.sendmsg([frames.datagram(messages.Connected(self.server.address))], rights)

    def close(self) -> None:
        self.theirs.close()
        self._thread.join(HANG_GUARD)
        self.ours.close()


class Web:
    """All three, and how to fetch."""

    def __init__(self, worker: RawWorker, broker: Leading, server: WebServer) -> None:
        self.worker, self.broker, self.server = worker, broker, server

    def fetch(self, url: str, offset: int = 0, left_s: float = FETCH_S) -> messages.Done | messages.Failed:
        return self.worker.call("fetch_url", {"url": url, "offset": offset}, queued_s=FETCH_S - left_s)

    def done(self, url: str, offset: int = 0, left_s: float = FETCH_S) -> messages.Done:
        answer = self.fetch(url, offset, left_s)
        assert isinstance(answer, messages.Done), answer
        return answer

    def declined(self, url: str, kind: str, *words: str) -> None:
        """Assert that a fetch fails in this way, and says so."""
        failed = self.failed(url)
        assert (failed.kind, [each for each in words if each not in failed.message]) == (kind, []), failed

    def text(self, url: str) -> str:
        return self.done(url).content

    def failed(self, url: str, offset: int = 0, left_s: float = FETCH_S) -> messages.Failed:
        answer = self.fetch(url, offset, left_s)
        assert isinstance(answer, messages.Failed), answer
        return answer

    def late(self, url: str) -> None:
        """Fetch what does not come, with little of the call's time left."""
        failed = self.failed(url, left_s=LEFT_S)
        assert (failed.kind, f"within {LEFT_S} s" in failed.message) == ("timeout", True), failed


OpenWeb = Callable[..., Web]


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def ca_file(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return authority.write(tmp_path_factory.mktemp("authority") / "ca.pem")


@contextmanager
def opened_web(
    authority: Authority,
    ca_file: Path,
    root: Path,
    *,
    command: tuple[str, ...] | None = None,
    http: bool = False,
    plain: bool = False,
    fetch_s: float = FETCH_S,
) -> Iterator[Web]:
    with ExitStack() as stack:
        server = stack.enter_context(WebServer(authority, plain=plain))
        broker = Leading(server)
        stack.callback(broker.close)
        worker = stack.enter_context(
            open_worker(
                root,
                category="web",
                writable=False,
                command=command,
                inputs=WebInputs(fetch_s, http, str(ca_file)),
                broker_fd=broker.theirs.fileno(),
                limits=LIMITS,
            )
        )
        broker.theirs.close()
        yield Web(worker, broker, server)


@pytest.fixture(scope="session")
def open_web(authority: Authority, ca_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenWeb]:
    """Open any number of sets of the three, each kept for the session under its settings."""
    root = tmp_path_factory.mktemp("nothing")
    with ExitStack() as stack:
        kept: dict[str, Web] = {}

        def web(**settings: object) -> Web:
            key = repr(sorted(settings.items()))
            if key not in kept or kept[key].worker.process.poll() is not None:
                kept[key] = stack.enter_context(opened_web(authority, ca_file, root, **settings))  # type: ignore[arg-type]
            return kept[key]

        yield web


@pytest.fixture
def web(open_web: OpenWeb) -> Web:
    """The shared three, with a server that has no page yet."""
    return fresh(open_web())


def fresh(web: Web) -> Web:
    """Return a set that has forgotten everything before."""
    web.server.play({})
    web.broker.refuse.clear()
    web.broker.silent.clear()
    web.broker.asked.clear()
    return web
