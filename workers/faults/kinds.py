"""Kinds of faults, and the moments at which each can happen: data, and one question about it.

Rule: a row here, and one function under the same name in `worker_faults`, or in `injector` for what is answered.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

from workers.wire.messages import Moment

MOMENTS: Final[Mapping[Moment, str]] = MappingProxyType(
    {
        "start": "when the worker is locked in, before it is ready",
        "call": "when a call has begun, before the tool does anything",
        "answer": "when the tool is done, before the call's first answer",
        "proposed": "when it has been told what a call would change",
        "keep": "while what would be replaced is being sent",
        "decided": "when a commit has been ordered, before it",
        "committed": "after a commit, before it is told",
    }
)
"""In the order in which they come."""

PROPOSING: Final[frozenset[Moment]] = frozenset({"proposed", "keep", "decided", "committed"})
"""Those that come only in calls that propose something: a tool without an effect never does."""

_ANY: Final[tuple[Moment, ...]] = ("call", *(each for each in get_args(Moment) if each != "call"))
_OF_A_CALL: Final[tuple[Moment, ...]] = ("call",)
_OF_AN_ANSWER: Final[tuple[Moment, ...]] = ("answer", "start", "keep", "committed")
_OF_A_LATE_ANSWER: Final[tuple[Moment, ...]] = ("answer", "committed")


class Kind(NamedTuple):
    """One fault: what happens, and the moments at which it can, first the usual one."""

    what: str
    moments: tuple[Moment, ...] = _ANY


FAULTS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        # The process.
        "exit": Kind("exits"),
        "sigkill": Kind("is killed by SIGKILL"),
        "sigstop": Kind("is stopped by SIGSTOP"),
        "sigsegv": Kind("reads where there is no memory"),
        "hang": Kind("does nothing any more"),
        "spin": Kind("computes for ever"),
        "ignore_sigterm": Kind("ignores SIGTERM, and does nothing any more"),
        # What it uses.
        "allocate": Kind("takes memory until there is none, at most 4 GiB, and does nothing any more"),
        "fork_bomb": Kind("forks until the kernel allows no more, at most 1024 times, and does nothing any more"),
        "open_files": Kind("opens descriptors until there is none, and goes on"),
        "fill_disk": Kind("writes to the root until nothing fits, and goes on"),
        # What it prints.
        "flood_stderr": Kind("writes 8 MiB to stderr, and goes on"),
        "print_stdout": Kind("prints to stdout, as a library might, and goes on"),
        # Its pipe.
        "close_pipe": Kind("closes its pipe, and lives on"),
        "grandchild_holds_pipe": Kind("exits, and leaves a process that holds its pipe"),
        # What it answers.
        "error_10mb": Kind("fails with a message of 10 MB", _OF_A_CALL),
        "frame_truncated": Kind("exits in the middle of its answer", _OF_AN_ANSWER),
        "frame_oversized": Kind("announces more than a frame may have", _OF_AN_ANSWER),
        "frame_garbage": Kind("answers with bytes that are no message", _OF_AN_ANSWER),
        "frame_wrong_id": Kind("answers another call", _OF_A_LATE_ANSWER),
        "frame_duplicated": Kind("answers twice at once", _OF_AN_ANSWER),
        "frame_late": Kind("answers again when the next thing is asked of it", _OF_A_LATE_ANSWER),
        "one_byte_at_a_time": Kind("answers byte by byte", _OF_AN_ANSWER),
    }
)


def moments(fault: str, *, effect: bool) -> tuple[Moment, ...]:
    """Return when a fault can happen to a worker whose calls may have an effect, or have none; first the usual one."""
    return tuple(each for each in FAULTS[fault].moments if effect or each not in PROPOSING)
