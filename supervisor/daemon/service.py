"""The daemon while it runs: clients accepted, turns run, signals obeyed.

Rule: on the first SIGTERM or SIGINT nobody new is let in, and running turns have a while to
finish; on the second, or after that while, they are cut off and recorded as such. Then workers are stopped, and nothing
is left. SIGHUP reads the configuration again. No failure of a client, a turn or a background task ends the daemon.
"""

import errno
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import trio

from supervisor.config.fault_plan import RunningFaultPlan
from supervisor.config.settings import Settings
from supervisor.daemon.method import MethodContext
from supervisor.daemon.methods import notify, serve
from supervisor.daemon.process.client_limit import CLIENTS, client_limit
from supervisor.daemon.process.listener import listening, listening_again, until_unnamed
from supervisor.daemon.process.lock import Lock
from supervisor.daemon.process.sd_notify import Notifier
from supervisor.daemon.protocol.connection import Connection, turn_away
from supervisor.daemon.running_configuration import RunningConfiguration
from supervisor.daemon.sessions.deletion import forget_deleted
from supervisor.daemon.sessions.idle import IdleCloser
from supervisor.daemon.sessions.journal_reader import JournalReader
from supervisor.daemon.sessions.recovery import forget_undecided, resume_interrupted
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.daemon.status import About
from supervisor.errors import StrongroomError
from supervisor.journal.journal import open_journal
from supervisor.pool.cgroup import worker_cgroups
from supervisor.pool.template_process import TemplateProcess
from supervisor.session.leases import Leases
from supervisor.session.resources import SessionResources, announce_faults, prepare_process
from supervisor.system import unix_socket

_log: Final = logging.getLogger("strongroom.daemon")

_OVERLOADED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE: Final = 0.1
_LOOK_EVERY: Final = 10.0
_CUT_TIMEOUT: Final = 5.0
"""Seconds that turns which are cut off have to be recorded."""
_FLUSH_TIMEOUT: Final = 1.0
"""Seconds that clients have to read the last answers."""


class Service:
    """A running daemon.

    Args:
        settings: as they were read at the start.
        private: whether it serves one client and ends with it.
        faults: those that the command line asked for.
        template: of its workers, if that runs already.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        private: bool,
        faults: RunningFaultPlan | None = None,
        template: TemplateProcess | None = None,
    ) -> None:
        self.about = About(private)
        self._settings = settings
        self._faults = faults
        self._template = template
        self._notifier = Notifier(settings)
        self._stop = trio.Event()
        self._draining = trio.CancelScope()
        """Turns have as long to finish."""
        self._accepting = trio.CancelScope()
        self._clients_at_most = CLIENTS

    async def run(self, serve: Callable[["Service", MethodContext, trio.Nursery], Awaitable[None]]) -> None:
        """Open everything, let `serve` bring the clients, and close everything when told to stop.

        Raises:
            StrongroomError: it cannot start.
        """
        failure: StrongroomError | None = None
        settings = self._settings
        orphans = prepare_process()
        self._clients_at_most = client_limit()
        with (
            worker_cgroups() as groups,
            open_journal(settings.journal) as journal,
            open_journal(settings.journal) as read_journal,
            Leases.open(settings.home) as leases,
        ):
            if self._faults is not None:
                announce_faults(self._faults.plan, journal)
            async with trio.open_nursery() as workers:
                resources = SessionResources(
                    settings,
                    journal,
                    workers,
                    orphans,
                    self._faults,
                    groups,
                    spares=not self.about.private,
                    template=self._template,
                )
                try:
                    async with trio.open_nursery() as nursery:
                        registry = SessionRegistry(resources, nursery, leases, JournalReader(read_journal))
                        idle_closer = IdleCloser(registry)
                        use = partial(self._use, registry, nursery)
                        configuration = RunningConfiguration(settings, self.about, use)
                        context = MethodContext(registry, idle_closer, self.about, configuration)
                        await nursery.start(self._obey, configuration)
                        nursery.start_soon(idle_closer.run)
                        nursery.start_soon(self._notifier.watch)
                        nursery.start_soon(serve, self, context, nursery)
                        await self._stop.wait()
                        await self._wind_up(registry, context)
                        nursery.cancel_scope.cancel()
                except* StrongroomError as group:
                    failure = _first(group)  # out of the nurseries, so that it arrives alone and not in a group
                finally:
                    await resources.close()
                workers.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def stop(self, *, at_once: bool = False) -> None:
        """End the daemon; with `at_once`, running turns are cut off."""
        self._accepting.cancel()
        self._stop.set()
        if at_once:
            self._draining.cancel()

    # --- ways to be served --------------------------------------------------------------------------------------

    async def at_socket(
        self, context: MethodContext, nursery: trio.Nursery, path: Path, lock: Lock, ready: Callable[[], None]
    ) -> None:
        """Serve whoever connects to `path` until told to stop.

        Raises:
            ConfigError, DaemonRuns: nobody can be served there.
        """
        with self._accepting, ExitStack() as stack:
            place = stack.enter_context(listening(path))
            lock.publish(path)
            try:
                ready()
                self._notifier.ready()
                _log.info("listening at %s", path)
                nursery.start_soon(_guarded, resume_interrupted, context.registry)
                nursery.start_soon(_guarded, forget_undecided, context.registry)
                nursery.start_soon(_guarded, forget_deleted, context.registry)
                while True:
                    async with trio.open_nursery() as accepting:
                        accepting.start_soon(self._accept, place.socket, context, nursery)
                        await until_unnamed(place, lock)
                        accepting.cancel_scope.cancel()
                    stack.close()
                    place = await listening_again(stack, path, lock)
            finally:
                lock.retire()

    async def _accept(self, server: socket.socket, context: MethodContext, nursery: trio.Nursery) -> None:
        """Let in whoever connects."""
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(server))
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in _OVERLOADED:
                    raise
                _log.warning("cannot accept another client: %s", error.strerror)
                await trio.sleep(_PAUSE)
                continue
            self._admit(stream, context, nursery)

    async def at_pair(self, context: MethodContext, connected: socket.socket) -> None:
        """Serve the one client at the other end of a socket pair, and stop when it leaves."""
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(connected))
        await self._serve(stream, context)
        for session in context.registry.sessions.values():
            session.leave_open()  # whoever leaves in mid-turn was killed: what is not recorded can be resumed
        self.stop(at_once=True)

    async def stop_when_idle(self, context: MethodContext) -> None:
        """Stop after a while in which nobody was there and nothing ran."""
        since = trio.current_time()
        while trio.current_time() - since < (limit := context.registry.settings.config.daemon.idle_exit_s):
            await trio.sleep(min(limit / 4, _LOOK_EVERY))
            if context.clients or context.registry.busy:
                since = trio.current_time()
        _log.info("stopping: no client for %.0f s", limit)
        self.stop()

    def _admit(self, stream: trio.SocketStream, context: MethodContext, nursery: trio.Nursery) -> None:
        peer = unix_socket.peer(stream.socket)
        if peer.uid != os.geteuid():
            _log.warning("refused a process (pid %d) of user %d", peer.pid, peer.uid)
            turn_away(stream, "permission_denied", "This daemon serves another user.")
        elif len(context.clients) >= self._clients_at_most:
            turn_away(stream, "too_many_clients", f"{self._clients_at_most} clients are connected; try again later.")
        else:
            nursery.start_soon(self._serve, stream, context)

    async def _serve(self, stream: trio.SocketStream, context: MethodContext) -> None:
        client = Connection(stream, partial(serve, context), partial(notify, context))
        context.clients.add(client)
        try:
            await client.run()
        except* Exception:  # noqa: BLE001 - the client's boundary: it costs its connection, not the daemon
            _log.exception("internal error in a connection")
        finally:
            context.clients.discard(client)
            context.registry.leave(client)

    # --- stopping -----------------------------------------------------------------------------------------------

    async def _obey(self, configuration: RunningConfiguration, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                if number == signal.SIGHUP:
                    self._notifier.reloading()
                    configuration.reload()
                    self._notifier.ready()
                else:
                    self.stop(at_once=self._stop.is_set())

    def _use(self, registry: SessionRegistry, nursery: trio.Nursery, settings: Settings) -> None:
        registry.resources.use_settings(settings)
        nursery.start_soon(_guarded, resume_interrupted, registry)  # a budget may have been raised

    async def _wind_up(self, registry: SessionRegistry, context: MethodContext) -> None:
        """Let turns finish, or cut them off; then let clients read their last answers."""
        self._notifier.stopping()
        registry.closing = True
        for session in registry.sessions.values():
            if session.subscribers.unanswerable or session.waiting:
                session.leave_open()
        drain = registry.settings.config.daemon.drain_s
        _log.info("stopping%s", f": turns have {drain:g} s to finish" if registry.busy else "")
        self._draining.deadline = trio.current_time() + drain
        with self._draining:
            await registry.wait_until_idle()
        for session in registry.sessions.values():
            if session.subscribers.approvals or session.waiting:
                session.leave_open()  # a person may answer yet, and a limit ends: the next daemon asks again
            else:
                session.cut()
        with trio.move_on_after(_CUT_TIMEOUT):
            await registry.wait_until_idle()
        for client in tuple(context.clients):
            client.finish_answered()
        with trio.move_on_after(_FLUSH_TIMEOUT):
            for client in tuple(context.clients):
                await client.closed.wait()


async def _guarded(task: Callable[[SessionRegistry], Awaitable[None]], registry: SessionRegistry) -> None:
    """Run a background task whose failure is logged and is nobody else's."""
    try:
        await task(registry)
    except Exception:  # noqa: BLE001 - the task's boundary
        _log.exception("a background task failed")


def _first(group: ExceptionGroup[StrongroomError]) -> StrongroomError:
    """Return one error for a group: tasks that fail together fail of the same cause, such as a full disk."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, StrongroomError)
    error.__cause__ = group
    return error
