"""A worker's life after Ready: Call -> Output* -> Done | Failed, until end of file.

Rule: one call at a time, exactly one final answer a call. A `ToolError` is an answer; so is running out of
memory. Any other exception is a bug: it leaves through `serve` and ends the process. A call that would change
something is proposed first, and nothing else is heard of until that is decided.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

import msgspec

from workers import kernel
from workers.confine.probe import try_doors
from workers.errors import RehearsalRefused, ToolError
from workers.tool import ContentResult, Proposal, Result, ResultWithNote, Tool, ToolContext
from workers.wire import frames, messages

_CHUNK = 2**16
_PIECE = 2**17
"""Bytes that are written at once, so that the other end may begin to read a large answer."""
_MESSAGE_LIMIT = 2**16
"""Characters of an error's message: a tool that quotes its input cannot flood the model."""

_SAID = 2**18
"""Characters of a result that is told together with the effects."""

_PARTS = (messages.Original, messages.Piece)
"""What comes before a `Kept`."""
_ANSWERS = (ToolError, RehearsalRefused, MemoryError)
"""Errors that are answers. Any other is a bug."""


class Pipe:
    """The private ends of the two pipes to the supervisor; blocking."""

    plan = False
    """Whether this worker only rehearses: then a message by which anything would change is a breach of the contract."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._buffer = b""
        self._gathered = bytearray()
        self.descriptors = (incoming, outgoing)

    def wait(self) -> None:
        """Return when the supervisor has said more, or has closed the pipe; what it said stays to be received."""
        self._buffer += os.read(self._incoming, _CHUNK)

    def receive(self) -> messages.Down | None:
        """Return the next message, or None at end of file.

        Raises:
            FrameError: the supervisor sent nonsense, or stopped in the middle of a frame.
        """
        size = frames.LENGTH.size
        if not self._buffer:
            data = os.read(self._incoming, _CHUNK)
            if len(data) > size and len(data) == size + frames.payload_length(data[:size]):
                return frames.decode_down(memoryview(data)[size:])  # the common case, one whole small frame
            if not data:
                return None
            self._buffer = data
        header = self._exactly(size, started=False)
        if not header:
            return None
        return frames.decode_down(self._exactly(frames.payload_length(header), started=True))

    def send(self, message: messages.Up) -> None:
        """Write one frame; what comes before a `Kept` is gathered, and written with what follows.

        A large content goes out from where it stands: a copy of it, and of what it pushes out of the processor's cache,
        takes 120 us of 1 MiB.

        Raises:
            FrameTooLarge: nothing was written.
        """
        if isinstance(message, messages.Done) and len(message.content) > _CHUNK and not self._gathered:
            content = kernel.utf8_of(message.content)
            before, after = frames.around(message, len(content))
            for each in (before, content, after):
                self._write(each)
            return
        frame = frames.frame_in_place(message)
        part = isinstance(message, _PARTS)
        if self._gathered or part:
            self._gathered += frame
            if not part or len(self._gathered) >= _CHUNK:
                self.flush()
            return
        self._write(frame)

    def flush(self) -> None:
        gathered, self._gathered = self._gathered, bytearray()
        self._write(gathered)

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        written = os.write(self._outgoing, data) if len(data) <= _PIECE else 0
        if written == len(data):
            return
        rest = memoryview(data)[written:]
        while rest:  # whoever is stopped while the pipe is full has written less
            rest = rest[os.write(self._outgoing, rest[:_PIECE]) :]

    def _exactly(self, size: int, *, started: bool) -> bytes:
        """Return `size` bytes; none at the end of file, unless a frame has `begun`."""
        buffer = self._buffer
        if len(buffer) < size:
            parts, have = [buffer], len(buffer)
            while have < size:
                part = os.read(self._incoming, max(_CHUNK, size - have))
                if not part:
                    if started or have:
                        raise frames.FrameError("end of file in the middle of a frame")
                    return b""
                parts.append(part)
                have += len(part)
            buffer = b"".join(parts)
        self._buffer = buffer[size:]
        return buffer[:size]


Arrange = Callable[[messages.Fault, Pipe, Tool], tuple[Pipe, Tool]]
"""Returns the pipe and the tool with which a call has its fault."""


def serve(
    pipe: Pipe,
    tools: Mapping[str, Tool],
    context: ToolContext,
    doors: Callable[[], Iterable[messages.Door]] = try_doors,
    arrange: Arrange | None = None,
) -> None:
    """Answer calls until the supervisor closes the pipe.

    Args:
        pipe: to the supervisor.
        tools: what can be called, by name.
        context: what they can reach.
        doors: tries the ways out, for a probe.
        arrange: lets calls have faults; None where the supervisor has not allowed any.
    """
    while (message := pipe.receive()) is not None:
        match message:
            case messages.Call():
                _answer(pipe, message, tools, context, arrange)
            case messages.Probe():
                pipe.send(messages.Probed(tuple(doors())))
            case _:
                raise frames.FrameError(f"{type(message).__name__} out of turn")


def _answer(
    pipe: Pipe, call: messages.Call, tools: Mapping[str, Tool], context: ToolContext, arrange: Arrange | None = None
) -> None:
    tool = tools.get(call.tool)
    if tool is None:
        there_is = f"No tool {call.tool!r}. There is: {', '.join(tools)}."
        _send(pipe, call, messages.Failed(call.id, "unknown_tool", there_is))
        return
    if pipe.plan and call.without_rehearsal:
        raise frames.FrameError("a call without a rehearsal, where nothing may change")
    if call.fault is not None:
        if arrange is None:
            raise frames.FrameError("a fault, where none was allowed")
        pipe, tool = arrange(call.fault, pipe, tool)
    later: list[Callable[[], None]] = []
    here = msgspec.structs.replace(
        context,
        later=later.append,
        output=lambda text: pipe.send(messages.Output(call.id, text)),
        queued_s=call.queued_s,
        call_s=call.call_s,
        without_rehearsal=call.without_rehearsal,
        network=call.network,
        unlisted=call.unlisted,
        upload=call.upload,
        places=call.places,
        content=call.content,
    )
    answer: messages.Up | Proposal
    try:
        try:
            result = tool.run(tool.decode(call.args), here)
            answer = result if isinstance(result, Proposal) else _done(call, result)
        except _ANSWERS as error:
            answer = _declined(call, error)
        _send(pipe, call, answer)
    finally:
        if later:  # seldom, and the stack takes a tenth of a small call
            with ExitStack() as stack:
                for each in later:
                    stack.callback(each)


def _propose(pipe: Pipe, call: messages.Call, proposal: Proposal) -> None:
    """Tell what a call would change, and do what is decided; leave everything as it is where nothing is.

    What is held for it is let go of once the answer is on its way.
    """
    proposal.number = call.id
    try:
        pipe.send(messages.Proposed(call.id, proposal.effects, _said(call, proposal)))
        message = pipe.receive()
        sent: set[bool] = set()
        while isinstance(message, messages.Keep) and message.id == call.id and message.caches not in sent:
            sent.add(message.caches)
            _send(pipe, call, _keep(pipe, message, proposal))
            message = pipe.receive()
        if message is None:
            return
        if not isinstance(message, messages.Decide) or message.id != call.id or (pipe.plan and message.commit):
            raise frames.FrameError(f"{type(message).__name__} while a call was to be decided")
        answer: messages.Up
        try:
            answer = _done(call, proposal.commit() if message.commit else proposal.discarded())
        except _ANSWERS as error:
            answer = _declined(call, error)
        _send(pipe, call, answer)
    finally:
        proposal.close()


def _keep(pipe: Pipe, keep: messages.Keep, proposal: Proposal) -> messages.Kept | messages.Failed:
    names = size = left_out = 0
    try:
        for each in proposal.cached(keep.total) if keep.caches else proposal.originals(keep.each, keep.total):
            if isinstance(each, bytes):
                size += len(each)
                pipe.send(messages.Piece(keep.id, each))
                continue
            names += 1
            left_out += each.before is not None and each.before.kind == "file" and not each.kept
            pipe.send(messages.Original(keep.id, *each[:4], dict(each.attributes), each.kept, each.gist))
    except ToolError as error:
        return _failed(keep.id, error)
    return messages.Kept(keep.id, names, size, left_out)


def _send(pipe: Pipe, call: messages.Call, answer: messages.Up | Proposal) -> None:
    if isinstance(answer, Proposal):
        _propose(pipe, call, answer)
        return
    try:
        pipe.send(answer)
    except MemoryError:  # while it was encoded: nothing was written
        pipe.send(_out_of_memory(call))
    except frames.FrameTooLarge as error:
        message = f"The result of {error.size} bytes is too large to return; ask for a part of it."
        pipe.send(messages.Failed(call.id, "too_large", message))


def _done(call: messages.Call, result: Result) -> messages.Done:
    if isinstance(result, str):
        return messages.Done(call.id, result)
    given, data = result if isinstance(result, ContentResult) else (result, b"")
    value, note, lacked = given if isinstance(given, ResultWithNote) else ResultWithNote(given, "")
    if isinstance(value, str):
        return messages.Done(call.id, value, "text", note, lacked, data)
    return messages.Done(call.id, msgspec.json.encode(value).decode(), "json", note, lacked, data)


def _said(call: messages.Call, proposal: Proposal) -> messages.Done | None:
    """Return how a call will be answered whose changes are made; None where that leaves them too little room."""
    answer = _done(call, proposal.expected())
    return answer if len(answer.content) + len(answer.note) <= _SAID else None


def _declined(call: messages.Call, error: Exception) -> messages.Up:
    match error:
        case ToolError():
            return _failed(call.id, error)
        case RehearsalRefused():
            return messages.Unrehearsable(call.id, str(error))
        case _:
            return _out_of_memory(call)


def _failed(call_id: int, error: ToolError) -> messages.Failed:
    return messages.Failed(call_id, error.kind, error.message[:_MESSAGE_LIMIT], error.details)


def _out_of_memory(call: messages.Call) -> messages.Failed:
    message = f"{call.tool} ran out of the worker's memory; ask for less at once."
    return messages.Failed(call.id, "resource_limit", message)


def by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Index tools by name, in their order."""
    return {tool.name: tool for tool in tools}
