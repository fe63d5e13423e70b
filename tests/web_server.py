"""Web servers on loopback: real TCP, real TLS, any answer, and a record of everything that reached them.

Rule: it tells the truth about what it saw. `seen` returns only when every connection that was made before has been
taken and has ended, so an empty list is a proof. What it answers is a table (tests/web_bodies.py); how it fails
to prove who it is, another (tests/authority.py); "hang_in_handshake" says nothing at all.

    with WebServer(authority, {"github.com/a": {"body": {"text": "hello"}}}) as server:
        ... server.address ("127.0.0.1:40000"), authority.write(folder / "ca.pem") ...
        assert [visit.server_name for visit in server.seen()] == ["github.com"]

It answers for every name: the certificate is made for the one that the client asks for (SNI). A page is found by the
request's Host header and path; what has no page gets `default`. One request a connection.
"""

import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from tests.authority import Authority
from tests.loopback import PATIENCE, Loopback
from tests.web_bodies import OK, Page, Peer, answer

_REQUEST_LIMIT: Final = 2**20
_HANDSHAKE: Final = 0x16
"""The first byte of a TLS connection."""


@dataclass
class Visit:
    """One connection as the server saw it."""

    peer: str
    server_name: str | None = None
    """What the client asked for in TLS."""
    plaintext: bytes = b""
    """What came in clear before TLS; everything, where the server speaks plain HTTP."""
    request: bytes = b""
    trouble: str = ""
    """What went wrong, as the client's alert or the system says it."""

    @property
    def lines(self) -> list[str]:
        return self.request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")

    @property
    def target(self) -> str:
        """The request's line without method and version."""
        return " ".join(self.lines[0].split(" ")[1:-1])

    @property
    def headers(self) -> dict[str, str]:
        pairs = (line.partition(":") for line in self.lines[1:])
        return {name.strip().lower(): value.strip() for name, _, value in pairs}


@dataclass
class WebServer(Loopback):
    """Listens from the start to the end of its context, on a port of its own.

    `pages`, `default`, `fault` (a row of TLS_FAULTS) and `plain` (HTTP instead of HTTPS) may be changed at any time.
    """

    authority: Authority
    pages: Mapping[str, Page] = field(default_factory=dict)
    default: Page = field(default_factory=lambda: OK)
    fault: str = ""
    plain: bool = False
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        super().__init__(self.host)
        self._taken = threading.Condition(self._lock)
        self._visits: list[Visit] = []
        self._ports = iter(range(10_000, 32_768))  # below those that Linux gives to who asks for none
        self._gates: dict[int, threading.Barrier] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._by_number: dict[int, Visit] = {}

    @property
    def address(self) -> str:
        """Where it listens, as `[web] resolve` wants it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __exit__(self, *error: object) -> None:
        for gate in self._gates.values():
            gate.abort()
        super().__exit__(*error)

    def play(self, pages: Mapping[str, Page], default: Page = OK, fault: str = "") -> None:
        """Answer otherwise from now on, and forget what was seen; everything of before has ended."""
        self.seen()
        self.pages, self.default, self.fault = pages, default, fault
        with self._lock:
            self._visits.clear()

    def seen(self) -> list[Visit]:
        """Return the connections that were made before this call, in their order, when all of them have ended.

        Raises:
            TimeoutError: a client keeps one open, or the server takes none.
        """
        with self._never_used() as ours:
            peer = str(ours.getsockname()[:2])
            ours.connect((self.host, self.port))
            with self._taken:  # connections are taken in their order: when ours is, the others are
                if not self._taken.wait_for(lambda: any(visit.peer == peer for visit in self._visits), PATIENCE):
                    raise TimeoutError("a connection is not taken")
        for thread in self._connections():
            thread.join(PATIENCE)
            if thread.is_alive():
                raise TimeoutError("a connection is still open")
        with self._lock:
            self._visits = [visit for visit in self._visits if visit.peer != peer]
            return list(self._visits)

    def _never_used(self) -> socket.socket:
        """Return a socket at a port that no connection to this server has come from: the system gives ports again."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        for port in self._ports:
            ours = socket.socket(family)
            with suppress(OSError):  # somebody has it
                ours.bind((self.host, port))
                return ours
            ours.close()
        raise TimeoutError("every port is taken")

    def taken(self, peer: str) -> Visit:
        self._visits.append(Visit(peer))
        self._taken.notify_all()
        return self._visits[-1]

    def serve(self, connection: socket.socket, what: Visit) -> None:
        try:
            self._converse(connection, what)
        except OSError as error:
            what.trouble = str(error)

    def _converse(self, connection: socket.socket, visit: Visit) -> None:
        if self.plain:
            visit.plaintext = _request(connection, visit)
        else:
            first = connection.recv(1, socket.MSG_PEEK)
            if not first:
                return
            if first[0] != _HANDSHAKE:
                visit.plaintext = connection.recv(_REQUEST_LIMIT)
                return
            if self.fault == "hang_in_handshake":
                Peer(connection, self._closing, self._gates).say_nothing()
                return
            connection = self._secured(connection, visit)
            with self._lock:
                self._open[threading.current_thread()] = connection
            _request(connection, visit)
        with connection:
            if visit.request:
                page = self.pages.get(visit.headers.get("host", "") + visit.target, self.default)
                answer(page, Peer(connection, self._closing, self._gates))
            if isinstance(connection, ssl.SSLSocket):
                with suppress(OSError):  # the client need not say goodbye
                    connection.unwrap()

    def _secured(self, connection: socket.socket, visit: Visit) -> ssl.SSLSocket:
        with self._lock:
            self._by_number[connection.fileno()] = visit
            context = self._contexts.get(self.fault) or self._context(self.fault)
        return context.wrap_socket(connection, server_side=True)

    def _context(self, fault: str) -> ssl.SSLContext:
        """Return what every connection begins with: the version is settled before the name is known."""
        context = self._contexts[fault] = self.authority.begin(fault)

        def asked(secured: ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> int | None:
            self._by_number[secured.fileno()].server_name = name
            try:
                secured.context = self.authority.context(name or "localhost", fault)
            except ValueError:  # no certificate can be made for it
                return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
            return None

        context.sni_callback = asked  # type: ignore[assignment]
        return context


def _request(connection: socket.socket, visit: Visit) -> bytes:
    while b"\r\n\r\n" not in visit.request and len(visit.request) < _REQUEST_LIMIT:
        chunk = connection.recv(2**16)
        if not chunk:
            break
        visit.request += chunk
    return visit.request
