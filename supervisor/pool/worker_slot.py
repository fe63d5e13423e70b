"""A slot for one worker: starts it, greets it, watches it, and replaces it when it ends.

Rule: a slot is a task. It owns every process that it starts and leaves none behind, whatever ends it. It decides
nothing: its owner says whether and when the next start may be.

    STARTING -> READY <-> BUSY          calls acquire the worker and release it
        \\         \\        \\
         +---------+---------+--> BACKOFF -> STARTING      the process ended
                                  FAILED  -> STARTING      too often, or it refused to serve
                                  STOPPED                  retired, or the pool closed

A worker that is to stop sees the end of its input first; then it gets SIGTERM, then SIGKILL. Nothing is started any
more once the owner closes.
"""

import logging
import socket
from enum import Enum
from typing import Final, NamedTuple, Protocol

import msgspec
import trio

from supervisor.errors import WorkerDied, WorkerError, WorkerUnavailable
from supervisor.pool.channel import Channel
from supervisor.pool.pipe_watch import PipeWatch
from supervisor.pool.spec import Broker, ChildSpec
from supervisor.pool.worker_process import WorkerProcess, orphans_ended
from workers.wire import frames, messages

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


class Owner(Protocol):
    """The part of a worker set that its slots report to."""

    closing: bool
    """Nothing may be started any more."""
    watch: PipeWatch
    """Reads from the workers."""

    @property
    def failed_because(self) -> str:
        """Why no worker can be started now; "" where one can."""

    def worker_started(self, slot: "WorkerSlot") -> None:
        """Take a worker that is ready for its first call."""

    def worker_retired(self, slot: "WorkerSlot") -> None:
        """Give no more calls to a worker that has been told to leave."""

    def worker_ended(self, slot: "WorkerSlot") -> None:
        """Give no more calls to a worker whose process has ended."""

    async def wait_to_restart(self, slot: "WorkerSlot", death: WorkerDied | ConfinementRefusal | OSError) -> None:
        """Return when the slot may start its next process, or when it may not at all."""

    def slot_ended(self, slot: "WorkerSlot") -> None:
        """Forget a slot whose task is over."""


class WorkerSlot:
    """One slot of a pool.

    Args:
        owner: is told what becomes of the worker.
        spec: what to start.
        number: of the slot, in the order of their start.
        root_fd: an O_PATH descriptor of the root.
    """

    def __init__(self, owner: Owner, spec: ChildSpec, number: int, root_fd: int = -1) -> None:
        self.spec = spec
        self.number = number
        self.state = WorkerState.STARTING
        self.used = 0
        """When its worker was last released, in the counting of the spec's cap."""
        self.restarts = 0
        self.last_death = ""
        self.enforced: tuple[str, ...] = ()
        self.degraded: tuple[str, ...] = ()
        self.process: WorkerProcess | None = None
        self.stopped = trio.Event()
        self._owner = owner
        self._root_fd = root_fd
        self._retired = False
        self._leaving = trio.Event()
        self._patience = 0.0
        self._scope = trio.CancelScope()
        self._refusal: ConfinementRefusal | None = None
        spec.cap.enter(self)

    def __repr__(self) -> str:
        pid = self.process.pid if self.process else None
        return f"<WorkerSlot {self.spec.category}[{self.number}] {self.state.value} pid={pid}>"

    @property
    def idle(self) -> bool:
        """Whether nothing is lost, and no call refused, where its worker is retired now."""
        return self.state is WorkerState.READY and not self._owner.failed_because

    @property
    def channel(self) -> Channel:
        """The way to its process.

        Raises:
            WorkerUnavailable: the process has ended.
        """
        if self.process is None:
            raise WorkerUnavailable("the worker has ended")
        return self.process.channel

    def retire(self, patience: float | None = None) -> None:
        """Let the worker end by itself: it sees end of file, and is not replaced.

        One that is still there at `patience` (trio's clock; default: after the spec's `stop_timeout`) gets SIGTERM, and
        SIGKILL after the spec's `terminate_timeout`.
        """
        if self._retired:
            return
        self._retired = True
        self._patience = trio.current_time() + self.spec.stop_timeout if patience is None else patience
        self._leaving.set()
        self.state = WorkerState.STOPPED
        self.spec.cap.leave(self)
        self._owner.worker_retired(self)
        if self.process is not None:
            self.process.channel.finish()
        else:
            self._scope.cancel()

    async def run(self) -> None:
        """Keep the slot filled until it is retired or cancelled."""
        try:
            with self._scope:
                while not (self._retired or self._owner.closing):
                    await self._fill()
        finally:
            self.state = WorkerState.STOPPED
            self.spec.cap.leave(self)
            self._owner.slot_ended(self)
            self.stopped.set()

    async def _fill(self) -> None:
        self.state = WorkerState.STARTING
        self._refusal = None
        self.spec.cap.enter(self)
        death: WorkerDied | ConfinementRefusal | OSError
        try:
            death = await self._run_process()
        except OSError as error:  # no process can be started: EAGAIN, ENOMEM, EMFILE, ...
            self._owner.worker_ended(self)
            death = error
        except Exception as error:  # noqa: BLE001 - one_for_one: what fails in keeping a worker is its end alone
            self._owner.worker_ended(self)
            _log.exception("worker %s[%d] could not be kept", self.spec.category, self.number)
            death = WorkerDied(f"could not be kept ({_cause(error)})")
        if self._retired:
            self.last_death = str(death)
        else:
            self.restarts += 1
            death = self._refusal or death
            self.last_death = str(death)
            self.spec.cap.leave(self)
            await self._owner.wait_to_restart(self, death)

    async def _run_process(self) -> WorkerDied:
        """Run one process from spawn to reap; return how it ended."""
        spec, serve = self.spec, self.spec.broker
        brokered = serve is not None
        forked = None if spec.template is None else await spec.template.fork(self._root_fd, brokered=brokered)
        process = WorkerProcess(
            forked or spec.command, self._root_fd, spec.orphans, self._owner.watch, brokered=brokered
        )
        self.process = process
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(process.drain_stderr)
                nursery.start_soon(self._greet, process)
                nursery.start_soon(self._kill_if_never_ready, process)
                nursery.start_soon(self._end_if_retired, process)
                if serve is not None and process.broker is not None:
                    nursery.start_soon(self._serve_connections, process, process.broker, serve)
                await process.wait()
                process.channel.drain()
                nursery.cancel_scope.cancel()
        finally:
            self._owner.worker_ended(self)
            self.process = None
            death = WorkerDied("ended, and nobody could look how")
            try:
                death = process.reap()
            finally:
                process.channel.fail(death)
            await orphans_ended(spec.orphans)
            if spec.orphans is None or not spec.orphans.stuck:
                process.gone.set()
        if not (self._retired or death.ordered) and process.last_words:
            _log.warning("worker %s[%d] wrote last: %s", self.spec.category, self.number, process.last_words)
        return death

    async def _greet(self, process: WorkerProcess) -> None:
        spec = self.spec
        if spec.groups is not None:
            await process.enter_cgroup(spec.groups, spec.limits, spec.disk_mb)
        start = messages.Start(
            messages.VERSION,
            spec.category,
            spec.context,
            process.root_fd,
            spec.writable and not spec.plan,
            spec.limits,
            spec.allow_degraded,
            spec.call_timeout,
            msgspec.msgpack.encode(spec.inputs),
            process.broker_fd,
            spec.faults is not None,
            None if spec.faults is None else spec.faults.fault_of_start(spec.category),
            spec.plan,
        )
        try:
            ready = await process.channel.exchange(frames.frame(start))
        except WorkerError:
            return  # it died; `_run_process` returns how
        if isinstance(ready, messages.Refused):
            self._refusal = ConfinementRefusal(ready.missing, ready.message)
            process.kill("refused to serve")
        elif not isinstance(ready, messages.Ready) or not self._is_as_agreed(ready):
            process.kill("sent a wrong greeting")
        else:
            self.enforced, self.degraded = ready.enforced, ready.degraded
            self._owner.worker_started(self)

    async def _kill_if_never_ready(self, process: WorkerProcess) -> None:
        # Not a deadline around the greeting: cancelling an exchange would pass for a caller's wish.
        await trio.sleep(self.spec.start_timeout)
        if self.state is WorkerState.STARTING:
            process.kill("was not ready in time")

    async def _serve_connections(self, process: WorkerProcess, end: socket.socket, serve: Broker) -> None:
        await serve(end, lambda: process.channel.running)
        process.kill("has no broker any more")  # it left, or asked too much: it is of no use

    async def _end_if_retired(self, process: WorkerProcess) -> None:
        await self._leaving.wait()
        await trio.sleep_until(self._patience)
        process.terminate("did not leave")
        await trio.sleep(self.spec.terminate_timeout)
        process.kill("did not leave")

    def _is_as_agreed(self, ready: messages.Ready) -> bool:
        spec = self.spec
        return (ready.version, ready.category) == (messages.VERSION, spec.category) and (
            not spec.tools or sorted(ready.tools) == sorted(spec.tools)
        )


def _cause(error: Exception) -> str:
    """Return the first failure of those that a nursery puts together, for people."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
