"""Rows of the table of methods: a name, the shapes of parameters and result, and the handler that answers.

Rule: to add a method, write its structs in `supervisor.acp.extensions` and one handler with `@method` in a module of
handlers. The list of announced extensions, and what clients decode, derive from these.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from supervisor.acp import jsonrpc
from supervisor.daemon.protocol.connection import ClientRequest, Connection, RequestError
from supervisor.daemon.running_configuration import RunningConfiguration
from supervisor.daemon.sessions.idle import IdleCloser
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.daemon.status import About

_P = TypeVar("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class MethodContext:
    """The parts of the daemon that handlers work with; one a daemon."""

    registry: SessionRegistry
    idle_closer: IdleCloser
    about: About
    configuration: RunningConfiguration
    clients: set[Connection] = field(default_factory=set)

    def session(self, session_id: str) -> OpenSession:
        """Return an open session.

        Raises:
            RequestError: it is not open.
        """
        session = self.registry.sessions.get(session_id)
        if session is None:
            message = f"The session {session_id[:80]!r} is not open here. Load or resume it first."
            raise RequestError(jsonrpc.NOT_FOUND, message, "not_found")
        return session


Handler = Callable[[MethodContext, ClientRequest, _P], Awaitable[_R | None]]


@dataclass(frozen=True)
class Method:
    """One method. With `starts`, it starts something, and is refused while the daemon stops."""

    name: str
    params: type[Any]
    result: type[Any]
    handler: Handler[Any, Any]
    starts: bool


def method(
    name: str, params: type[_P], result: type[_R], *, starts: bool = False
) -> Callable[[Handler[_P, _R]], Method]:
    """Make a handler the row of a method; its result is null where the handler returns None."""
    return lambda handler: Method(name, params, result, handler, starts)
