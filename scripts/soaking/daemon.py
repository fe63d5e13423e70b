"""The daemon of a soak: started, killed, started again, and looked at from outside.

Rule: this process is the nearest subreaper, so whatever a daemon leaves behind becomes its child: there is nothing
else that it starts. Only processes of its own are ever sent a signal, through descriptors that cannot come to mean
another one.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scripts.soaking.processes import descriptors, kept_for_later, left_behind, parent, take_in_orphans
from scripts.soaking.world import World
from supervisor.acp import extensions
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import Listener, decline
from supervisor.errors import StrongroomError
from supervisor.pool.worker_usage import usage_of_process
from supervisor.system import unix_socket
from supervisor.version import VERSION

_PATIENCE: Final = 60.0
"""Seconds within which whatever is waited for has happened, however loaded the machine is."""
_PAUSE: Final = 0.02
_MIB: Final = 2**20
_WORKERS_OWN: Final = 4
"""Descriptors that a daemon has open for a worker: two pipes of frames, stderr, and its pidfd."""


@dataclass
class Sample:
    """The daemon at one moment."""

    at: float
    memory: float
    """MiB, resident."""
    calls: int
    unexplained: int | None
    """Descriptors besides those of workers, roots and clients; where they were looked at closely, also without what
    SQLite keeps; None where the kernel does not tell."""
    status: extensions.Status
    open_files: Mapping[int, str] | None = None
    """Descriptors, and where they lead; None where that was not asked for, or nobody but root may know."""


@dataclass
class Life:
    """One process of the daemon."""

    number: int
    pid: int
    began: float
    burning: bool
    """Whether workers fail as a plan says."""
    ended: float = 0.0
    last_row: int = 0
    """Of the journal, when it had ended."""
    samples: list[Sample] = field(default_factory=list)


class Daemon:
    """The daemon.

    Args:
        world: where it works.
    """

    def __init__(self, world: World) -> None:
        self.lives: list[Life] = []
        self.deaths: list[str] = []
        """Ends that nobody had ordered."""
        self.kills = 0
        self.leaked: list[str] = []
        """Processes that ends have left behind."""
        self._world = world
        self._process: subprocess.Popen[bytes] | None = None
        self._up = threading.Condition()
        self._listening = False
        take_in_orphans()

    @property
    def life(self) -> Life:
        """The one that runs, or was the last."""
        return self.lives[-1]

    @property
    def errors(self) -> Path:
        """The file of what it has written to stderr."""
        return self._world.base / "daemon.err"

    @property
    def running(self) -> bool:
        """Whether it was started, and has not been seen to end."""
        return self._process is not None and self._process.returncode is None

    def start(self, plan: Path | None) -> None:
        """Start it, and return when it listens.

        Raises:
            RuntimeError: it does not.
        """
        faults = ["--faults", str(plan)] if plan else []
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "supervisor", "daemon", *faults],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=self._world.environment,
                cwd=self._world.base,
                start_new_session=True,
            )
        self.lives.append(Life(len(self.lives), self._process.pid, time.time(), plan is not None))
        deadline = time.monotonic() + _PATIENCE
        while not self._reachable():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"The daemon does not listen; {self.errors} may tell why.")
            time.sleep(_PAUSE)
        with self._up:
            self._listening = True
            self._up.notify_all()

    def wait_until_up(self, seconds: float) -> bool:
        """Wait until it listens; say whether it does."""
        with self._up:
            return self._up.wait_for(lambda: self._listening, seconds)

    def died(self) -> bool:
        """Note that it has ended by itself, if it has."""
        assert self._process is not None
        if self._process.poll() is None:
            return False
        self.deaths.append(f"life {self.life.number} ended by itself with {self._process.returncode}")
        self._finish()
        return True

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self.kills += 1
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it end (SIGTERM), which must not take for ever, and must end well."""
        code = self._end(signal.SIGTERM)
        if code != 0:
            self.deaths.append(f"life {self.life.number} was asked to end, and ended with {code}")

    def _end(self, number: signal.Signals) -> int | None:
        assert self._process is not None
        with self._up:
            self._listening = False
        self._process.send_signal(number)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._finish()
        return self._process.returncode

    def _finish(self) -> None:
        with self._up:
            self._listening = False
        self.life.ended = time.time()
        self.leaked += [f"{each} after life {self.life.number}" for each in left_behind()]
        self.life.last_row = self._last_row()

    def _last_row(self) -> int:
        """Return the journal's last row; the daemon has ended."""
        with closing(sqlite3.connect(self._world.home / "journal.db")) as journal:
            return int(journal.execute("SELECT coalesce(max(seq), 0) FROM facts").fetchone()[0])

    def _reachable(self) -> bool:
        with suppress(OSError, StrongroomError), self.connected(decline):
            return True
        return False

    # --- looking --------------------------------------------------------------------------------------------------

    @contextmanager
    def connected(self, listener: Listener) -> Iterator[Link]:
        """Connect a client.

        Raises:
            OSError, StrongroomError: it is not there, or goes away.
        """
        link = self.connect(listener)
        try:
            yield link
        finally:
            link.close()

    def connect(self, listener: Listener) -> Link:
        """Connect a client, which closes the link.

        Raises:
            OSError, StrongroomError: it is not there, or goes away.
        """
        link = Link(unix_socket.connect(str(self._world.home / "daemon.sock")), listener)
        try:
            link.introduce("soak", VERSION)
        except BaseException:
            link.close()
            raise
        return link

    def life_at(self, link: Link) -> Life:
        """Return the life that is at the other end of a link."""
        assert link.daemon is not None
        pid = link.daemon.pid
        return next(each for each in reversed(self.lives) if each.pid == pid)

    def look(self, *, closely: bool = False) -> Sample | None:
        """Return how it is now, with its descriptors if `closely`, and remember it; None where it is going away."""
        life = self.life
        try:
            with self.connected(decline) as link:
                status = link.request(extensions.STATUS_METHOD, {}, extensions.Status)
                used = usage_of_process(status.daemon.pid)
                open_files = descriptors(status.daemon.pid) if closely else None
        except (OSError, StrongroomError):
            return None
        explained = _WORKERS_OWN * len(live(status)) + sum(each.category == "web" for each in live(status))
        explained += len({each.root for each in status.pools}) + len(status.pools) + status.clients
        explained += kept_for_later(open_files or {}).total()
        unexplained = used.open_files - explained if used.open_files is not None else None
        calls = sum(each.calls for each in status.pools)
        life.samples.append(Sample(time.time(), used.memory / _MIB, calls, unexplained, status, open_files))
        return life.samples[-1]

    def hurt(self, pid: int, number: signal.Signals) -> bool:
        """Send a worker a signal; say whether it was there."""
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            ours_still = parent(pid) == self.life.pid
            if ours_still:
                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return ours_still


def live(status: extensions.Status) -> list[extensions.WorkerStatus]:
    """Return the workers that have a process."""
    return [worker for pool in status.pools for worker in pool.workers if worker.pid is not None]


def restarts(lives: list[Life]) -> Counter[str]:
    """Count, by category, how often workers were started again, as far as was seen."""
    found: Counter[str] = Counter()
    for life in lives:
        most: dict[tuple[str, str, int], int] = {}
        for sample in life.samples:
            for pool in sample.status.pools:
                for worker in pool.workers:
                    at = (pool.category, pool.root, worker.number)
                    most[at] = max(most.get(at, 0), worker.restarts)
        for (category, _, _), count in most.items():
            found[category] += count
    return found
