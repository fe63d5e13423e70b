"""Lets a call have its fault, at its moment; and the faults of what a worker answers, by name.

Rule: the loop knows nothing of faults but that a call may come with one. A call that has one gets a pipe and a tool
which look like the others; where the moments are is read from what goes through that pipe. A fault of an answer is
given the right one, and what it makes of that is its own.
"""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from workers.faults.worker_faults import ACTS, EXIT_CODE, Scene
from workers.loop import Pipe
from workers.tool import Tool, ToolContext
from workers.wire import frames, messages

_FINAL: Final = (messages.Done, messages.Failed, messages.Unrehearsable)
_PARTS: Final = (messages.Output, messages.Original, messages.Piece)


class FaultInjector:
    """The faults of one worker, made before it is locked in."""

    def __init__(self, start: messages.Start) -> None:
        self._scene = Scene(start.root_fd)
        self.descriptors = self._scene.descriptors

    def starting(self, pipe: Pipe, fault: messages.Fault | None) -> Pipe:
        """Let the fault of a start happen; return the pipe for its answer."""
        if fault is None:
            return pipe
        faulty = _Faulty(pipe, self._scene, fault)
        faulty.reach("start")
        return faulty

    def arrange(self, fault: messages.Fault, pipe: Pipe, tool: Tool) -> tuple[Pipe, Tool]:
        """Return the pipe and the tool with which a call has this fault.

        Raises:
            FrameError: there is no such fault.
        """
        faulty = _Faulty(pipe, self._scene, fault)

        def run(args: Any, context: ToolContext) -> Any:
            faulty.reach("call")
            return tool.run(args, context)

        return faulty, msgspec.structs.replace(tool, run=run)


class _Faulty(Pipe):
    """A pipe through which one call goes, or the answer to Start."""

    def __init__(self, pipe: Pipe, scene: Scene, fault: messages.Fault) -> None:
        if fault.name not in ACTS and fault.name not in ANSWERS:
            raise frames.FrameError(f"there is no fault {fault.name!r}")
        super().__init__(*pipe.descriptors)
        self.plan = pipe.plan
        self._pipe = pipe
        self._scene = scene
        self._fault = fault
        self._happened = False
        self._stage: messages.Moment = "start" if fault.at == "start" else "answer"
        """Which answer comes next."""
        scene.outgoing = pipe.descriptors[1]

    def reach(self, moment: messages.Moment) -> None:
        """Let an act happen, if this is its moment."""
        if moment == self._fault.at and not self._happened and (act := ACTS.get(self._fault.name)):
            self._happened = True
            act(self._scene)

    def wait(self) -> None:
        self._pipe.wait()

    def say(self, data: bytes, at_once: int = 2**30) -> None:
        """Write everything, after what was said before, `at_once` bytes at a time."""
        self._pipe.flush()
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptors[1], view[:at_once]) :]

    def receive(self) -> messages.Down | None:
        if self._stage == "answer":
            self.reach("proposed")
        message = self._pipe.receive()
        if isinstance(message, messages.Keep):
            self._stage = "keep"
        elif isinstance(message, messages.Decide):
            self._stage = "committed"
            if message.commit:
                self.reach("decided")
        return message

    def send(self, message: messages.Up) -> None:
        if isinstance(message, _PARTS):
            self._pipe.send(message)
            if isinstance(message, messages.Original):
                self.reach("keep")
            return
        self.reach(self._stage)
        fault = ANSWERS.get(self._fault.name) if self._stage == self._fault.at else None
        if fault is None:
            self._pipe.send(message)
        else:
            fault(self, message)
        if isinstance(message, _FINAL):
            self._scene.release()


def _truncated(pipe: _Faulty, answer: messages.Up) -> None:
    data = frames.frame(answer)
    pipe.say(data[: len(data) // 2])
    os._exit(EXIT_CODE)


def _garbage(pipe: _Faulty, answer: messages.Up) -> None:
    payload = frames.frame(answer)[frames.LENGTH.size :]
    pipe.say(frames.LENGTH.pack(len(payload)) + bytes(each ^ 0xFF for each in payload))


def _wrong_id(pipe: _Faulty, answer: messages.Up) -> None:
    body = msgspec.structs.asdict(answer)
    pipe.say(frames.frame(type(answer)(**{**body, "id": body["id"] ^ 1})))


def _late(pipe: _Faulty, answer: messages.Up) -> None:
    pipe.say(frames.frame(answer))
    pipe.wait()
    pipe.say(frames.frame(answer))


ANSWERS: Final[Mapping[str, Callable[[_Faulty, messages.Up], None]]] = MappingProxyType(
    {
        "frame_truncated": _truncated,
        "frame_oversized": lambda pipe, _answer: pipe.say(frames.LENGTH.pack(frames.FRAME_LIMIT + 1)),
        "frame_garbage": _garbage,
        "frame_wrong_id": _wrong_id,
        "frame_duplicated": lambda pipe, answer: pipe.say(frames.frame(answer) * 2),
        "frame_late": _late,
        "one_byte_at_a_time": lambda pipe, answer: pipe.say(frames.frame(answer), at_once=1),
    }
)
