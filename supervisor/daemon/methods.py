"""The table of methods that clients may call, and what becomes of a request: found, decoded, handled.

Rule: a request comes to its handler with its parameters decoded; before `initialize` nothing else is served, and while
the daemon stops nothing is started. `method.py` says how to add one.
"""

from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import Any, Final

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.acp.introduction import introduction
from supervisor.agent.models.key_choice import told_keys, variable_names
from supervisor.daemon import (
    compact_methods,
    daemon_methods,
    file_methods,
    inbox_methods,
    rule_methods,
    session_methods,
    turn_methods,
)
from supervisor.daemon.method import Method, MethodContext, method
from supervisor.daemon.process.logs import keep_out
from supervisor.daemon.protocol.connection import ClientRequest, Connection, RequestError
from supervisor.daemon.responses import decoded
from supervisor.version import VERSION


def serve(context: MethodContext, request: ClientRequest) -> Awaitable[Any]:
    """Find a request's method and decode its parameters; return what awaits the result.

    Raises:
        RequestError: it cannot be served.
    """
    row = METHODS.get(request.method)
    if row is not _initialize and not request.client.initialized:
        raise RequestError(jsonrpc.INVALID_REQUEST, "Send initialize first.", "not_initialized")
    if row is None:
        message = f"No method {request.method[:80]!r}."
        raise RequestError(jsonrpc.METHOD_NOT_FOUND, message, "unknown_method")
    if row.starts and context.registry.closing:
        raise RequestError(jsonrpc.INTERNAL_ERROR, "The daemon is stopping; connect again.", "stopping")
    return row.handler(context, request, decoded(request.params, row.params))


def notify(context: MethodContext, client: Connection, notification: jsonrpc.Notification) -> None:
    """Take one notification; unknown ones, and ones that make no sense, are ignored."""
    if notification.method == "session/cancel" and client.initialized:
        params = jsonrpc.decoded(notification.params, schema.SessionParams)
        session_id = params.session_id if isinstance(params, schema.SessionParams) else ""
        if (session := context.registry.sessions.get(session_id)) is not None:
            session.cancel()
    elif notification.method == extensions.VARIABLES:
        told = jsonrpc.decoded(notification.params, extensions.ClientVariables)
        if isinstance(told, extensions.ClientVariables):
            client.variables = told.variables
            client.keys = told_keys(context.registry.settings, told.keys)
            keep_out(client.keys.values())


@method("initialize", schema.InitializeParams, schema.InitializeResult)
async def _initialize(
    context: MethodContext, request: ClientRequest, params: schema.InitializeParams
) -> schema.InitializeResult:
    client = request.client
    client.client, client.initialized = params.client_info, True
    client.capabilities = params.client_capabilities or schema.ClientCapabilities()
    settings = context.registry.settings
    meta = {extensions.DAEMON: context.about.daemon(settings), extensions.KEY_VARIABLES: variable_names(settings)}
    return introduction(VERSION, client.capabilities, _EXTENSIONS, meta)


_MODULES: Final = (
    session_methods,
    turn_methods,
    compact_methods,
    inbox_methods,
    rule_methods,
    file_methods,
    daemon_methods,
)
_ROWS: Final = [row for module in _MODULES for row in vars(module).values()]
METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {row.name: row for row in (_initialize, *_ROWS) if isinstance(row, Method)}
)
_EXTENSIONS: Final = tuple(dict.fromkeys([*(name for name in METHODS if name.startswith("_")), *extensions.ANNOUNCED]))
