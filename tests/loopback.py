"""A server on loopback that serves each connection in a thread of its own.

Rule: entering listens, leaving closes every connection and joins every thread. A connection that ends in an OSError has
ended, and nothing else has: whoever went away in the middle of something is no business of the server.
"""

import socket
import threading
from contextlib import suppress
from typing import Any, Final, Self

PATIENCE: Final = 60.0
"""Seconds within which whatever a test waits for has happened."""


class Loopback:
    """Listens at `host` and `port`, any port for 0; `taken` and `serve` are a subclass's."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.port = port
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._open: dict[threading.Thread, socket.socket] = {}

    def __enter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, self.port), family=family, backlog=256)
        self.port = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        for thread, connection in self._connections().items():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)

    def taken(self, peer: str) -> Any:
        """Hear that a connection was taken; return what `serve` is to know of it."""
        raise NotImplementedError

    def serve(self, connection: socket.socket, what: Any) -> None:
        """Serve a connection, which is closed afterwards."""
        raise NotImplementedError

    def _connections(self) -> dict[threading.Thread, socket.socket]:
        with self._lock:
            return dict(self._open)

    def _accept(self) -> None:
        while True:
            try:
                connection, peer = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                thread = threading.Thread(target=self._run, args=(connection, self.taken(str(peer[:2]))), daemon=True)
                self._open[thread] = connection
                thread.start()

    def _run(self, connection: socket.socket, what: Any) -> None:
        try:
            with suppress(OSError), connection:
                self.serve(connection, what)
        finally:
            with self._lock:
                del self._open[threading.current_thread()]
