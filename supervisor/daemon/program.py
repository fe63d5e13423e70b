"""The daemon as a program: in the foreground, in the background for a client, or private to one.

Rule: one daemon a home. The lock is held before anything is opened, and given up after everything is closed.
"""

import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import trio

from supervisor.acp import jsonrpc
from supervisor.config.fault_plan import RunningFaultPlan, read_plan
from supervisor.config.settings import Settings, load
from supervisor.daemon.method import MethodContext
from supervisor.daemon.process.lock import hold
from supervisor.daemon.process.logs import log_to_stderr, start_logging
from supervisor.daemon.protocol.connection import as_fault
from supervisor.daemon.service import Service
from supervisor.errors import ConfigError, DaemonRuns, StrongroomError
from supervisor.pool.template_process import TemplateProcess
from supervisor.system.garbage import collect_from_here
from supervisor.system.safe_files import secure_home
from workers.kernel import prctl

_log: Final = logging.getLogger("strongroom.daemon")
_SET_PDEATHSIG: Final = 1


def run(
    settings: Settings,
    path: Path | None,
    verbose: int,
    ready: Callable[[], None] = lambda: None,
    faults: RunningFaultPlan | None = None,
    *,
    stays: bool = True,
) -> int:
    """Run until SIGTERM or SIGINT, in the foreground, or till it was long idle unless it `stays`; return the exit code.

    Raises:
        DaemonRuns: this home has one already.
        StrongroomError: it cannot start.
    """
    collect_from_here()
    settings = replace(settings, socket=path or settings.socket)
    with hold(settings) as lock:
        start_logging(settings, to_stderr=stays, verbose=verbose)

        async def serve(service: Service, context: MethodContext, nursery: trio.Nursery) -> None:
            if not stays:
                nursery.start_soon(service.stop_when_idle, context)
            await service.at_socket(context, nursery, settings.socket, lock, ready)

        try:
            trio.run(Service(settings, private=False, faults=faults).run, serve)
        except StrongroomError as error:
            _log.error("ended: %s", error)
            raise
        except Exception:
            _log.exception("ended by an internal error")
            raise
        _log.info("ended")
    return 0


def run_background(word: int) -> int:
    """Run for clients that found none; say on the pipe `word` that it listens, or why not. Ends when long idle."""

    def say(text: bytes) -> None:
        with suppress(OSError):
            os.write(word, text)
        with suppress(OSError):
            os.close(word)

    try:
        return run(load(), None, 0, lambda: say(b"listening"), stays=False)
    except DaemonRuns:
        say(b"runs")
        return 0
    except StrongroomError as error:
        say(msgspec.json.encode(as_fault(error)))
        return 1


def run_private(descriptor: int, parent: int, level: int, template: TemplateProcess, plan: Path | None = None) -> int:
    """Serve the client `parent` at the other end of a socket pair, and end with it, however it ends.

    `level` is logging's: what its stderr, which is the client's, shall see. `template` is that of its workers, `plan`
    the client's fault plan.
    """
    prctl("PR_SET_PDEATHSIG", _SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1  # it ended before we had asked to be told
    collect_from_here()
    connected = socket.socket(fileno=descriptor)

    async def serve(service: Service, context: MethodContext, _nursery: trio.Nursery) -> None:
        await service.at_pair(context, connected)

    try:
        settings = load()
        secure_home(settings.home)
        log_to_stderr(settings, level)
        faults = None if plan is None else RunningFaultPlan(read_plan(plan))
        trio.run(Service(settings, private=True, faults=faults, template=template).run, serve)
    except StrongroomError as error:
        _tell(connected, error)
        return 1
    except OSError as error:  # not even the event loop can begin
        _tell(connected, ConfigError(f"The daemon cannot be started: {error.strerror}."))
        return 1
    return 0


def _tell(client: socket.socket, error: StrongroomError) -> None:
    """Let the client that waits for the answer to its first request know why there is no daemon."""
    with suppress(OSError), client.makefile("rwb") as lines:
        client.setblocking(True)
        for message in jsonrpc.decode(lines.readline(jsonrpc.LINE_LIMIT)):
            if isinstance(message, jsonrpc.Request):
                lines.write(jsonrpc.failure(message.id, as_fault(error)))
