"""The single calls and undos that run in an open session, so that they can be cut off with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from supervisor.acp import jsonrpc
from supervisor.daemon.protocol.connection import RequestError


class CallScopes:
    """Those of one session; `rest` is called when one has ended."""

    def __init__(self, rest: Callable[[], None]) -> None:
        self._rest = rest
        self._scopes: list[trio.CancelScope] = []

    def __bool__(self) -> bool:
        return bool(self._scopes)

    def cut(self) -> None:
        for scope in tuple(self._scopes):
            scope.cancel()

    @contextmanager
    def running(self, cut_off: str) -> Iterator[None]:
        """Count as running, and be cut off with the session; then raise `RequestError` that says so."""
        scope = trio.CancelScope()
        self._scopes.append(scope)
        try:
            with scope:
                yield
        finally:
            self._scopes.remove(scope)
            self._rest()
        if scope.cancelled_caught:
            raise RequestError(jsonrpc.CANCELLED, cut_off, "cancelled")
