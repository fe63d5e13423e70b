"""The faults of what a worker answers, by name.

Rule: each is given the right answer, and the pipe as bytes; what it makes of them is its own.
"""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from workers.wire import frames, messages

_EXIT_CODE: Final = 70


class RawPipe:
    """The pipe to the supervisor, as bytes. `wait` returns when the supervisor has said more."""

    def __init__(self, outgoing: int, wait: Callable[[], None]) -> None:
        self._outgoing = outgoing
        self.wait = wait

    def say(self, data: bytes, at_once: int = 2**30) -> None:
        """Write everything, `at_once` bytes at a time."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._outgoing, view[:at_once]) :]


Answer = Callable[[RawPipe, messages.Up], None]


def _truncated(mouth: RawPipe, answer: messages.Up) -> None:
    data = frames.frame(answer)
    mouth.say(data[: len(data) // 2])
    os._exit(_EXIT_CODE)


def _oversized(mouth: RawPipe, _answer: messages.Up) -> None:
    mouth.say(frames.LENGTH.pack(frames.FRAME_LIMIT + 1))


def _garbage(mouth: RawPipe, answer: messages.Up) -> None:
    payload = frames.frame(answer)[frames.LENGTH.size :]
    mouth.say(frames.LENGTH.pack(len(payload)) + bytes(each ^ 0xFF for each in payload))


def _wrong_id(mouth: RawPipe, answer: messages.Up) -> None:
    body = msgspec.structs.asdict(answer)
    mouth.say(frames.frame(type(answer)(**{**body, "id": body["id"] ^ 1})))


def _duplicated(mouth: RawPipe, answer: messages.Up) -> None:
    mouth.say(frames.frame(answer) * 2)


def _late(mouth: RawPipe, answer: messages.Up) -> None:
    mouth.say(frames.frame(answer))
    mouth.wait()
    mouth.say(frames.frame(answer))


def _one_byte_at_a_time(mouth: RawPipe, answer: messages.Up) -> None:
    mouth.say(frames.frame(answer), at_once=1)


ANSWERS: Final[Mapping[str, Answer]] = MappingProxyType(
    {
        "frame_truncated": _truncated,
        "frame_oversized": _oversized,
        "frame_garbage": _garbage,
        "frame_wrong_id": _wrong_id,
        "frame_duplicated": _duplicated,
        "frame_late": _late,
        "one_byte_at_a_time": _one_byte_at_a_time,
    }
)
