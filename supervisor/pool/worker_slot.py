"""One worker kept alive: started, greeted, watched, replaced.

Rule: a keeper is a task with one slot. It owns every process that it starts and leaves none behind, whatever ends
it. It decides nothing: the crew says whether and when the next start may be.

    STARTING -> READY <-> BUSY          the pool lends the worker out and takes it back
        \\         \\        \\
         +---------+---------+--> BACKOFF -> STARTING      the process died
                                  FAILED  -> STARTING      too often, or it refused to serve
                                  STOPPED                  retired, or the pool closed

A worker that is to stop sees the end of its input first; then it gets SIGTERM, then SIGKILL. Nothing is started any
more once its crew closes.
"""

import logging
import socket
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import trio

from supervisor.errors import WorkerDied, WorkerError
from supervisor.pool.spec import Broker, ChildSpec
from supervisor.pool.worker_process import WorkerProcess
from workers.wire import frames, messages

if TYPE_CHECKING:
    from supervisor.pool.worker_set import WorkerSet

_log: Final = logging.getLogger("strongroom.pool")


class WorkerState(Enum):
    """The states of one worker, in OTP's spirit; the vocabulary of `status`."""

    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    BACKOFF = "backoff"
    FAILED = "failed"
    STOPPED = "stopped"


class ConfinementRefusal(NamedTuple):
    """The worker cannot be confined; starting it again at once would not help."""

    missing: str
    message: str

    def __str__(self) -> str:
        return f"refused to serve without {self.missing}: {self.message}"


class WorkerSlot:
    """One slot of a pool."""

    def __init__(self, crew: "WorkerSet", spec: ChildSpec, number: int) -> None:
        self.spec = spec
        self.number = number
        self.state = WorkerState.STARTING
        self.restarts = 0
        self.last_death = ""
        self.enforced: tuple[str, ...] = ()
        self.degraded: tuple[str, ...] = ()
        self.process: WorkerProcess | None = None
        self.stopped = trio.Event()
        self._crew = crew
        self._retired = False
        self._leaving = trio.Event()
        self._patience = 0.0
        self._scope = trio.CancelScope()
        self._refusal: ConfinementRefusal | None = None

    def __repr__(self) -> str:
        pid = self.process.pid if self.process else None
        return f"<Keeper {self.spec.category}[{self.number}] {self.state.value} pid={pid}>"

    def retire(self, patience: float | None = None) -> None:
        """Let the worker leave in peace: it sees end of file, and is not replaced.

        One that is still there at `patience` (trio's clock; default: after the spec's `stop_timeout`) gets SIGTERM, and
        SIGKILL after the spec's `terminate_timeout`.
        """
        if self._retired:
            return
        self._retired = True
        self._patience = trio.current_time() + self.spec.stop_timeout if patience is None else patience
        self._leaving.set()
        self.state = WorkerState.STOPPED
        if self.process is not None:
            self.process.channel.finish()
        else:
            self._scope.cancel()

    async def run(self) -> None:
        """Keep the slot filled until it is retired or cancelled."""
        try:
            with self._scope:
                while not (self._retired or self._crew.closing):
                    await self._live_once()
        finally:
            self.state = WorkerState.STOPPED
            self._crew.left(self)
            self.stopped.set()

    async def _live_once(self) -> None:
        self.state = WorkerState.STARTING
        self._refusal = None
        death: WorkerDied | ConfinementRefusal | OSError
        try:
            death = await self._live()
        except OSError as error:  # no process to be had: EAGAIN, ENOMEM, EMFILE, ...
            self._crew.withdraw(self)
            death = error
        except Exception as error:  # noqa: BLE001 - one_for_one: what fails in keeping a worker is its end alone
            self._crew.withdraw(self)
            _log.exception("worker %s[%d] could not be kept", self.spec.category, self.number)
            death = WorkerDied(f"could not be kept ({_cause(error)})")
        if self._retired:
            self.last_death = str(death)
        else:
            self.restarts += 1
            death = self._refusal or death
            self.last_death = str(death)
            await self._crew.lost(self, death)

    async def _live(self) -> WorkerDied:
        """Live one process from spawn to reap; return how it ended."""
        serve = self.spec.broker
        brokered = serve is not None
        process = WorkerProcess(self.spec.command, self._crew.root_fd, self._crew.orphans, brokered=brokered)
        self.process = process
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(process.drain_stderr)
                nursery.start_soon(self._greet, process)
                nursery.start_soon(self._lose_patience, process)
                nursery.start_soon(self._see_out, process)
                if serve is not None and process.broker is not None:
                    nursery.start_soon(self._connect, process, process.broker, serve)
                await process.wait()
                process.channel.drain()
                nursery.cancel_scope.cancel()
        finally:
            self._crew.withdraw(self)
            self.process = None
            death = WorkerDied("ended, and nobody could look how")
            try:
                death = process.reap()
            finally:
                process.channel.fail(death)
        if not (self._retired or death.ordered) and process.last_words:
            _log.warning("worker %s[%d] wrote last: %s", self.spec.category, self.number, process.last_words)
        return death

    async def _greet(self, process: WorkerProcess) -> None:
        spec = self.spec
        if spec.groups is not None:
            await process.enter(spec.groups, spec.limits, spec.disk_mb)
        start = messages.Start(
            messages.VERSION,
            spec.category,
            spec.context,
            self._crew.root_fd,
            spec.writable,
            spec.limits,
            spec.allow_degraded,
            spec.call_timeout,
            msgspec.msgpack.encode(spec.inputs),
            process.broker_fd,
            spec.faults is not None,
            None if spec.faults is None else spec.faults.of_start(spec.category),
        )
        try:
            ready = await process.channel.exchange(frames.frame(start))
        except WorkerError:
            return  # it died; `_live` reports how
        if isinstance(ready, messages.Refused):
            self._refusal = ConfinementRefusal(ready.missing, ready.message)
            process.kill("refused to serve")
        elif not isinstance(ready, messages.Ready) or not self._as_agreed(ready):
            process.kill("sent a wrong greeting")
        else:
            self.enforced, self.degraded = ready.enforced, ready.degraded
            self._crew.offer(self)

    async def _lose_patience(self, process: WorkerProcess) -> None:
        # Not a deadline around the greeting: cancelling an exchange would pass for a caller's wish.
        await trio.sleep(self.spec.start_timeout)
        if self.state is WorkerState.STARTING:
            process.kill("was not ready in time")

    async def _connect(self, process: WorkerProcess, end: socket.socket, serve: Broker) -> None:
        await serve(end, lambda: process.channel.running)
        process.kill("has no broker any more")  # it left, or was given up: it is of no use

    async def _see_out(self, process: WorkerProcess) -> None:
        await self._leaving.wait()
        await trio.sleep_until(self._patience)
        process.terminate("did not leave")
        await trio.sleep(self.spec.terminate_timeout)
        process.kill("did not leave")

    def _as_agreed(self, ready: messages.Ready) -> bool:
        spec = self.spec
        return (ready.version, ready.category) == (messages.VERSION, spec.category) and (
            not spec.tools or sorted(ready.tools) == sorted(spec.tools)
        )


def _cause(error: Exception) -> str:
    """Return the first failure of those that a nursery puts together, for people."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
