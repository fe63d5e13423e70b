"""A worker's life after Ready: Call -> Output* -> Done | Failed, until end of file.

Rule: one call at a time, exactly one final answer a call. A `ToolError` is an answer; so is running out of
memory. Any other exception is a bug: it leaves through `serve` and ends the process.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from workers import wire
from workers.confine.probe import try_doors
from workers.tool import Noted, Room, Tool, ToolError

_CHUNK = 2**16
_MESSAGE_LIMIT = 2**16
"""Characters of an error's message: a tool that quotes its input cannot flood the model."""


class Pipe:
    """The private ends of the two pipes to the supervisor; blocking."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._buffer = b""
        self.descriptors = (incoming, outgoing)

    def receive(self) -> wire.Down | None:
        """Return the next message, or None at end of file.

        Raises:
            wire.FrameError: the supervisor sent nonsense, or stopped in the middle of a frame.
        """
        size = wire.LENGTH.size
        if not self._buffer:
            data = os.read(self._incoming, _CHUNK)
            if len(data) > size and len(data) == size + wire.payload_length(data[:size]):
                return wire.decode_down(memoryview(data)[size:])  # the common case, one whole small frame
            if not data:
                return None
            self._buffer = data
        header = self._exactly(size, begun=False)
        if not header:
            return None
        return wire.decode_down(self._exactly(wire.payload_length(header), begun=True))

    def send(self, message: wire.Up) -> None:
        """Write one frame.

        Raises:
            wire.FrameTooLarge: nothing was written.
        """
        data = wire.frame(message)
        written = os.write(self._outgoing, data)
        while written < len(data):
            written += os.write(self._outgoing, memoryview(data)[written:])

    def _exactly(self, size: int, *, begun: bool) -> bytes:
        """Return `size` bytes; none at the end of file, unless a frame has `begun`."""
        buffer = self._buffer
        if len(buffer) < size:
            parts, have = [buffer], len(buffer)
            while have < size:
                part = os.read(self._incoming, max(_CHUNK, size - have))
                if not part:
                    if begun or have:
                        raise wire.FrameError("end of file in the middle of a frame")
                    return b""
                parts.append(part)
                have += len(part)
            buffer = b"".join(parts)
        self._buffer = buffer[size:]
        return buffer[:size]


def serve(
    pipe: Pipe, tools: Mapping[str, Tool], room: Room, doors: Callable[[], Iterable[wire.Door]] = try_doors
) -> None:
    """Answer calls until the supervisor closes the pipe. `doors` tries the ways out, for a probe."""
    while (message := pipe.receive()) is not None:
        match message:
            case wire.Call():
                _answer(pipe, message, tools, room)
            case wire.Probe():
                pipe.send(wire.Probed(tuple(doors())))
            case wire.Start():
                raise wire.FrameError("a second Start")


def _answer(pipe: Pipe, call: wire.Call, tools: Mapping[str, Tool], room: Room) -> None:
    def output(text: str) -> None:
        pipe.send(wire.Output(call.id, text))

    answer = _run(call, tools, Room(room.context, room.root, output, room.engine, call.late_s))
    try:
        pipe.send(answer)
    except MemoryError:  # while it was encoded: nothing was written
        pipe.send(_out_of_memory(call))
    except wire.FrameTooLarge as error:
        message = f"The result of {error.size} bytes is too large to return; ask for a part of it."
        pipe.send(wire.Failed(call.id, "too_large", message))


def _run(call: wire.Call, tools: Mapping[str, Tool], room: Room) -> wire.Done | wire.Failed:
    tool = tools.get(call.tool)
    if tool is None:
        return wire.Failed(call.id, "unknown_tool", f"No tool {call.tool!r}. There is: {', '.join(tools)}.")
    try:
        result = tool.run(tool.decode(call.args), room)
        value, note = result if isinstance(result, Noted) else (result, "")
        if isinstance(value, str):
            return wire.Done(call.id, value, "text", note)
        return wire.Done(call.id, msgspec.json.encode(value).decode(), "json", note)
    except ToolError as error:
        return wire.Failed(call.id, error.kind, error.message[:_MESSAGE_LIMIT], error.details)
    except MemoryError:
        return _out_of_memory(call)


def _out_of_memory(call: wire.Call) -> wire.Failed:
    message = f"{call.tool} ran out of the worker's memory; ask for less at once."
    return wire.Failed(call.id, "resource_limit", message)


def by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Index tools by name, in their order."""
    return {tool.name: tool for tool in tools}
