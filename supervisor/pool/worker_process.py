"""One worker process: spawned, watched by its pidfd, killed, reaped.

Rule: processes are spawned from the main thread, because PR_SET_PDEATHSIG fires when the spawning *thread* ends
(prctl(2)) and trio's threads end after ten idle seconds. A process's end is its exit, seen on the pidfd; end of
file is only a hint, since a grandchild can hold the pipe for ever.
"""

import logging
import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from typing import Final, Literal

import trio
from trio.lowlevel import notify_closing, wait_readable

from supervisor.errors import OUT_OF_MEMORY, WorkerDied
from supervisor.pool.cgroup import WorkerCgroup, WorkerCgroups
from supervisor.pool.channel import Channel
from supervisor.pool.child_process import ForkedWorker, end_with_this_process, spawn
from supervisor.pool.pipe_watch import PipeWatch
from supervisor.system.descendants import Orphans
from workers.wire.messages import FORKED_BROKER, FORKED_ROOT, Limits

Ordered = Literal["timeout", "cancelled", "resource_limit", ""]

_HAS_EXITED: Final = os.WEXITED | os.WNOHANG | os.WNOWAIT
_STDERR_CHUNK: Final = 2**18
_STDERR_PAUSE: Final = 0.002
"""Seconds after a chunk that was at least a pipe's default size: a flood is drained, but starves nobody."""

_STDERR_FLOOD: Final = 2**16

_STDERR_TAIL: Final = 2000
"""Bytes of stderr that the log keeps of one worker."""

_ORPHANS_END_S: Final = 2.0
"""Seconds for which orphans that were killed are waited for."""
_LOOK_AGAIN: Final = 0.005

_log: Final = logging.getLogger("strongroom.pool")


class WorkerProcess:
    """A worker, spawned or forked. `channel` speaks to it; `wait` returns when it has exited; `reap` must follow.

    Raises:
        OSError: the program cannot be started, or this process is out of descriptors.
    """

    def __init__(
        self,
        start: tuple[str, ...] | ForkedWorker,
        root_fd: int,
        orphans: Orphans | None,
        watch: PipeWatch,
        *,
        brokered: bool = False,
    ) -> None:
        self._orphans = orphans
        self.broker: socket.socket | None = None
        """Our end of the socket on which the worker asks for connections."""
        self.broker_fd = -1
        """The number that the other end has in the worker."""
        self.root_fd = root_fd
        """The number that the root has there."""
        with ExitStack() as undo:

            def kept(descriptor: int) -> int:
                undo.callback(os.close, descriptor)
                return descriptor

            undo.callback(self._close_broker)
            self._popen: Final = self._begin(start, brokered=brokered)
            undo.callback(self._popen.wait)
            undo.callback(self._popen.kill)
            self.pid: Final = self._popen.pid
            if orphans is not None:
                orphans.adopt(self.pid)
                undo.callback(orphans.release, self.pid)
            assert self._popen.stdin
            assert self._popen.stdout
            assert self._popen.stderr
            with self._popen.stdin as down, self._popen.stdout as up, self._popen.stderr as errors:
                self._pidfd = kept(os.pidfd_open(self.pid))
                self._stderr = kept(os.dup(errors.fileno()))
                os.set_blocking(self._stderr, False)
                incoming, outgoing = kept(os.dup(up.fileno())), kept(os.dup(down.fileno()))
                self.exited: Final = trio.Event()
                self.gone: Final = trio.Event()
                """Set when all of it has ended: nothing of it changes anything any more."""
                self.channel = Channel(incoming, outgoing, self.kill, self.exited, watch)
            undo.pop_all()
        self.started: Final = time.monotonic()
        self.cgroup: WorkerCgroup | None = None
        """Its cgroup, where it has one."""
        self._groups: WorkerCgroups | None = None
        self._tail = b""
        self._why = ""

    def _begin(
        self, start: tuple[str, ...] | ForkedWorker, *, brokered: bool
    ) -> "subprocess.Popen[bytes] | ForkedWorker":
        """Spawn it, unless it was forked."""
        if isinstance(start, ForkedWorker):
            self.broker, self.broker_fd, self.root_fd = start.broker, FORKED_BROKER if brokered else -1, FORKED_ROOT
            return start
        with ExitStack() as passed:
            descriptors = [self.root_fd]
            if brokered:
                self.broker, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                passed.enter_context(theirs)
                self.broker_fd = theirs.fileno()
                descriptors.append(self.broker_fd)
            return spawn(start, descriptors, end_with_this_process)

    async def enter_cgroup(self, groups: WorkerCgroups, limits: Limits, disk_mb: int) -> None:
        """Move it into a cgroup of its own, before it has started anything: in a thread, the kernel takes up to 8 ms.

        Where that fails it is said in the log, and the limits of each process hold without.
        """
        self._groups = groups
        try:
            self.cgroup = await trio.to_thread.run_sync(groups.create, self.pid, limits, disk_mb)
        except (OSError, RuntimeError) as error:  # the latter is Python's word for a thread that cannot be started
            if not self._has_ended():
                _log.warning("worker %d has no cgroup of its own: %s", self.pid, error)

    def kill(self, why: str) -> None:
        """End the whole process group, or cgroup, at once; the first reason given is the one reported.

        One that has ended already keeps its own; what is left of its group is for `reap`.
        """
        if self._signal(signal.SIGKILL, why):
            self._kill_cgroup()

    def terminate(self, why: str) -> None:
        """Ask the whole process group to end; it may refuse."""
        self._signal(signal.SIGTERM, why)

    def _signal(self, number: int, why: str) -> bool:
        if self._has_ended():
            return False  # the reason is known, and the number may soon be another's
        self._why = self._why or why
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        return True

    def _kill_cgroup(self) -> None:
        if self.cgroup is not None:
            with suppress(OSError):
                self.cgroup.kill()

    def abandon(self, why: Ordered) -> None:
        """End the process and tell its caller at once, without waiting for the kernel to finish with it."""
        self.kill(why)
        self.channel.fail(WorkerDied(f"was ended ({why})", why))

    async def wait(self) -> None:
        """Return when the process has exited; it stays a zombie until `reap`."""
        await wait_readable(self._pidfd)
        self.exited.set()

    def reap(self) -> WorkerDied:
        """Kill what is left of the group, collect the exit status, close everything; return how it ended.

        A process that SIGKILL does not end within a second (stuck in the kernel) is left, for `Orphans` to collect.
        """
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # even a zombie still holds the group's number
        self._kill_cgroup()
        self.exited.set()
        try:
            reason, status = "", self._popen.wait(timeout=1)
        except subprocess.TimeoutExpired:
            reason, status = "cannot be killed: it is stuck in the kernel", 0
        with suppress(MemoryError):  # then its last words are not known
            self._read_stderr()
        for descriptor in (self._pidfd, self._stderr):
            notify_closing(descriptor)
            os.close(descriptor)
        self.channel.close()
        self._close_broker()
        if self._orphans is not None:
            (self._orphans.leave if reason else self._orphans.release)(self.pid)
            if found := self._orphans.sweep():
                level = logging.INFO if self._why else logging.WARNING  # who is killed cannot clear up
                _log.log(level, "killed %d processes that worker %d had left behind", found, self.pid)
        death = WorkerDied(reason or self._reason(status), self._ordered(status))
        if self.cgroup is not None and self._groups is not None:
            if status == -signal.SIGKILL and not self._why and self.cgroup.ran_out_of_memory():
                death = WorkerDied(f"{death.reason} ({OUT_OF_MEMORY})", "resource_limit")
            self._groups.remove(self.cgroup)
        return death

    async def drain_stderr(self) -> None:
        """Keep stderr flowing and remember its end; never parsed, never shown to the model."""
        while True:
            await wait_readable(self._stderr)
            size = self._read_stderr()
            if size == 0:
                return
            if size >= _STDERR_FLOOD:
                await trio.sleep(_STDERR_PAUSE)

    @property
    def last_words(self) -> str:
        """The end of what it wrote to stderr, safe to print."""
        text = self._tail.decode("utf-8", "backslashreplace").strip()
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)

    def _has_ended(self) -> bool:
        """Say whether it has exited; by waitid(2), as poll(2) fails where this process may have no descriptors."""
        try:
            return self.exited.is_set() or os.waitid(os.P_PIDFD, self._pidfd, _HAS_EXITED) is not None
        except ChildProcessError:  # SIGCHLD is ignored: nothing stays of a child
            return True

    def _close_broker(self) -> None:
        if self.broker is not None:
            self.broker.close()
            self.broker = None

    def _read_stderr(self) -> int:
        try:
            chunk = os.read(self._stderr, _STDERR_CHUNK)
        except OSError:
            return -1
        self._tail = (self._tail + chunk)[-_STDERR_TAIL:]
        return len(chunk)

    def _reason(self, status: int) -> str:
        if status >= 0:
            how = f"exited with code {status}"
        elif -status in {each.value for each in signal.Signals}:
            how = f"was killed by {signal.Signals(-status).name}"
        else:
            how = f"was killed by signal {-status}"
        killed = status in (-signal.SIGKILL, -signal.SIGTERM)  # else it had ended by itself before it could be
        return f"{how} ({self._why})" if self._why and killed else how

    def _ordered(self, status: int) -> Ordered:
        if self._why in ("timeout", "cancelled"):
            return "timeout" if self._why == "timeout" else "cancelled"
        return "resource_limit" if status == -signal.SIGXCPU else ""


async def orphans_ended(orphans: Orphans | None) -> None:
    """Return when the orphans that were killed have ended, or soon all the same; not to be cancelled.

    Those that hold thousands of files take seconds. One that the kernel does not let go is reaped by a later sweep.
    """
    with trio.move_on_after(_ORPHANS_END_S, shield=True):
        while orphans is not None and orphans.stuck:
            await trio.sleep(_LOOK_AGAIN)
            orphans.sweep()
