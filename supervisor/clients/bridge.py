"""`strongroom acp`: the daemon on standard input and output, for editors.

Rule: bytes go through unchanged, both ways; nothing else is ever written to standard output. Before the first of them
the daemon is told where the editor's programs are, and which keys of models there are. Either side may end it: when the
editor says no more, what it asked for is still answered; when the daemon closes, it is over. Where none can be
started, it introduces the agent itself.
"""

import os
import select
import socket
import sys
import threading
from contextlib import suppress
from typing import Final

from supervisor.acp import extensions, jsonrpc, schema
from supervisor.acp.introduction import introduction
from supervisor.acp.jsonrpc import LineBuffer, TooLong
from supervisor.clients.connection.patience import version_notices, warn
from supervisor.clients.connection.start import find, start
from supervisor.config.settings import Settings, load
from supervisor.daemon.process.lock import running
from supervisor.errors import ConfigError, DaemonLost, StrongroomError
from supervisor.version import VERSION

_STDIN: Final = 0
_STDOUT: Final = 1
_CHUNK: Final = 2**16


def run_bridge() -> int:
    """Bridge until either side ends; return the exit code.

    Raises:
        ConfigError: there is no daemon, and none can be started; the editor has been told when it wanted one.
        DaemonLost: the daemon closed while the editor might still have had something to say.
    """
    if sys.stdin is None or sys.stdout is None:  # then the descriptors 0 and 1 are something else's
        raise ConfigError("Standard input or output is closed.")
    try:
        settings = load()
        connection = find(settings) or start(settings)
        told = _variables(settings)
        found = running(settings)
    except StrongroomError as error:
        _refuse(error)
        raise
    if found is not None:
        warn(version_notices(found.pid, found.version))
    silent = threading.Event()
    with connection:
        with suppress(OSError):  # `_listen` finds the end
            connection.sendall(jsonrpc.notification(extensions.VARIABLES, told))
        threading.Thread(target=_say, args=(connection, silent), name="strongroom acp", daemon=True).start()
        if not _listen(connection):
            return 1
    if not silent.is_set():
        raise DaemonLost("The daemon has closed the connection.")
    return 0


def _variables(settings: Settings) -> extensions.ClientVariables:
    """Return what the daemon is told of the editor's environment: where programs are, and keys."""
    from supervisor.agent.models.key_choice import told_keys

    return extensions.ClientVariables(settings.person, told_keys(settings, settings.environment))


def _listen(connection: socket.socket) -> bool:
    """Pass on what the daemon says until it closes; False when the editor has gone before that."""
    news = select.poll()
    news.register(connection, select.POLLIN)
    news.register(_STDOUT, 0)  # for its errors alone: nobody reads there any more
    while all(descriptor != _STDOUT for descriptor, _ in news.poll()):
        chunk = _heard(connection)
        if not chunk:
            return True
        try:
            _write(chunk)
        except OSError:
            break
    return False


def _heard(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK)
    except OSError:
        return b""  # it was cut off


def _say(connection: socket.socket, silent: threading.Event) -> None:
    """Pass on what the editor says, then that it says no more."""
    with suppress(OSError):
        while chunk := os.read(_STDIN, _CHUNK):
            connection.sendall(chunk)
        silent.set()
        connection.shutdown(socket.SHUT_WR)


def _write(chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(_STDOUT, rest) :]


def _refuse(error: StrongroomError) -> None:
    """Introduce the agent, which needs no daemon; answer anything else with the reason why there is none, once."""
    kind = "config" if isinstance(error, ConfigError) else "unavailable"
    fault = jsonrpc.fault(jsonrpc.INTERNAL_ERROR, str(error), kind)
    lines = LineBuffer(jsonrpc.LINE_LIMIT)
    with suppress(OSError):
        while chunk := os.read(_STDIN, _CHUNK):
            for line in lines.feed(chunk):
                for message in [] if isinstance(line, TooLong) else jsonrpc.decode(line):
                    if (introduced := _introduced(message)) is not None:
                        _write(introduced)
                    elif isinstance(message, jsonrpc.Request | jsonrpc.Bad):
                        _write(jsonrpc.failure(message.id, fault))
                        return


def _introduced(message: jsonrpc.Message | jsonrpc.Bad) -> bytes | None:
    """Return the answer to `initialize`; None to anything else."""
    if not isinstance(message, jsonrpc.Request) or message.method != "initialize":
        return None
    told = jsonrpc.decoded(message.params, schema.InitializeParams)
    if isinstance(told, jsonrpc.ErrorObject):
        return jsonrpc.failure(message.id, told)
    return jsonrpc.result(message.id, introduction(VERSION, told.client_capabilities or schema.ClientCapabilities()))
