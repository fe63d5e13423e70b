"""The processes that a daemon leaves behind when it ends.

Rule: whoever asks has become the nearest subreaper before, so that they are its children, and has no other
children that live when it asks.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from workers.kernel import prctl

_SET_CHILD_SUBREAPER: Final = 36
_PAUSE: Final = 0.02
_TOLD: Final = ("Name:", "State:", "NSpid:", "SigBlk:", "ShdPnd:")
_COMMAND: Final = 120


def take_in_orphans() -> None:
    """Become the parent of whatever the children of this process leave behind."""
    prctl("PR_SET_CHILD_SUBREAPER", _SET_CHILD_SUBREAPER, 1)


def left_behind(patience: float = 15.0) -> list[str]:
    """Return the children that are left after a while, and end them: the caller's own have ended."""
    deadline = time.monotonic() + patience
    while (found := _living()) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    while left := _living():
        for pid in left:
            with suppress(ProcessLookupError):
                if (group := os.getpgid(pid)) != os.getpgrp():
                    os.killpg(group, signal.SIGKILL)  # a worker's own group: whatever it has forked meanwhile too
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)
    return [f"process {pid} ({command})" for pid, command in found.items()]


def _living() -> dict[int, str]:
    """Return the children that live, and reap those that do not."""
    found = {}
    for pid in _children():
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                found[pid] = _name(pid)
    return found


def _children() -> list[int]:
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that ends meanwhile
            found += map(int, (task / "children").read_text().split())
    return found


def _name(pid: int) -> str:
    """Return what a process is called, its state, and its numbers in the namespaces that it is in."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        told = [line.partition(":")[2].strip() for line in lines if line.startswith(_TOLD)]
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        waits_in = Path(f"/proc/{pid}/wchan").read_text()
        return ", ".join([*told, waits_in, command[:_COMMAND].strip()])
    return "?"


def descriptors(pid: int) -> dict[int, str] | None:
    """Return what a process has open, and where it leads; None where the kernel tells this only to root."""
    found = {}
    try:
        for each in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):  # it was closed meanwhile
                found[int(each)] = os.readlink(f"/proc/{pid}/fd/{each}")
    except OSError:
        return None
    return found


def kept_for_later(open_files: Mapping[int, str]) -> Counter[str]:
    """Count the descriptors of databases that no connection uses, by where they lead.

    While others have the database open, SQLite keeps what a closed connection had, for the next one: to close it would
    drop their locks (https://www.sqlite.org/howtocorrupt.html, 2.2). Each connection that is open has a log open, too.
    """
    count = Counter(open_files.values())
    return Counter({to: count[to] - count[log] for log in count if (to := log.removesuffix("-wal")) != log})


def parent(pid: int) -> int:
    """Return the parent of a process; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
