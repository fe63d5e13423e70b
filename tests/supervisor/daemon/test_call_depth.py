"""The files and frames that one `read_file` passes, from the daemon's socket to openat2."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import trio

from supervisor.acp import extensions
from supervisor.daemon.method import MethodContext
from supervisor.daemon.methods import notify, serve
from supervisor.daemon.protocol.connection import Connection
from supervisor.daemon.running_configuration import RunningConfiguration
from supervisor.daemon.sessions.idle import IdleCloser
from supervisor.daemon.sessions.registry import SessionRegistry
from supervisor.daemon.status import About
from supervisor.pool.channel import Channel
from tests.daemon_process import scripted
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import call
from workers import kernel, loop
from workers.files.read_file import read_file
from workers.tool import ToolContext
from workers.tree.root import Root
from workers.wire import messages
from workers.wire.frames import frame as frame_of

PROJECT: Final = Path(__file__).parents[3]
OURS: Final = (f"{PROJECT}/supervisor/", f"{PROJECT}/workers/")
FILES_AT_MOST: Final = 13
FRAMES_AT_MOST: Final = 24
ENTRY: Final = 2
"""Frames of a worker below its loop: `main` and `run` of workers/__main__.py, one file."""


class Frame(NamedTuple):
    file: str
    function: str


def frames() -> list[Frame]:
    """Return our own frames from here outwards."""

    def walk() -> Iterator[Frame]:
        frame = sys._getframe(1)
        while (outer := frame.f_back) is not None:
            frame = outer
            if frame.f_code.co_filename.startswith(OURS):
                yield Frame(frame.f_code.co_filename.removeprefix(f"{PROJECT}/"), frame.f_code.co_name)

    return list(walk())


class Spawns(trio.abc.Instrument):
    """Remembers for each task who has started it, and from which frames."""

    def __init__(self) -> None:
        self.by: dict[trio.lowlevel.Task, tuple[trio.lowlevel.Task, list[Frame]]] = {}

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.by[task] = (trio.lowlevel.current_task(), frames())

    def way(self) -> list[Frame]:
        """Return our frames from here outwards, over the starts of tasks."""
        way, task = frames(), trio.lowlevel.current_task()
        while task in self.by:
            task, before = self.by[task]
            way += before
        return way


async def in_the_daemon(
    registry: SessionRegistry, root: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> list[Frame]:
    """Return the frames from the socket to the pool's channel."""
    spawns, ways, ask = Spawns(), [], Channel.ask

    async def watched(self: Channel, *args: Any, **more: Any) -> messages.Answer:
        ways.append([Frame("supervisor/pool/channel.py", "ask"), *spawns.way()])
        return await ask(self, *args, **more)

    monkeypatch.setattr(Channel, "ask", watched)
    monkeypatch.setattr(Channel, "begin", lambda *_: False)  # who has waited for a worker sends the call itself
    here, there = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
    about = About(private=False)
    configuration = RunningConfiguration(registry.settings, about, registry.resources.use_settings)
    context = MethodContext(registry, IdleCloser(registry), about, configuration)
    connection = Connection(there, lambda request: serve(context, request), lambda *told: notify(context, *told))
    session, _ = await registry.open(str(root), extensions.SessionOptions(profile="project", model=model))
    trio.lowlevel.add_instrument(spawns)
    params = {"sessionId": session.id, "prompt": [{"type": "text", "text": "go"}]}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params},
    ]
    async with here, trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        await here.send_all(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        heard = b""
        while b'"stopReason"' not in heard:
            heard += await here.receive_some()
        nursery.cancel_scope.cancel()
    trio.lowlevel.remove_instrument(spawns)
    (way,) = (way for way in ways if way[-1].file.endswith("connection.py"))  # the others are starts of workers
    return way


def in_the_worker(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[Frame]:
    """Return the frames from the worker's loop to openat2, and its entry's."""
    ways, syscall = [], kernel.syscall

    def watched(name: str, *args: Any) -> int:
        if name == "openat2":
            ways.append([Frame("workers/kernel.py", "syscall"), *frames()])
        return syscall(name, *args)

    monkeypatch.setattr(kernel, "syscall", watched)
    (receiving, sending), (answers, answering) = os.pipe(), os.pipe()
    os.write(sending, frame_of(messages.Call(1, "read_file", b'{"path":"a.txt"}')))
    os.close(sending)
    directory = os.open(root, os.O_PATH)
    context = ToolContext(messages.Context(working_directory=str(root)), Root(directory, 0o022))
    loop.serve(loop.Pipe(receiving, answering), loop.by_name([read_file]), context)
    assert b"hello" in os.read(answers, 2**16)
    for descriptor in (receiving, answering, answers, directory):
        os.close(descriptor)
    (way,) = ways
    return [*way, *[Frame("workers/__main__.py", "run")] * ENTRY]


async def test_a_reader_follows_read_file_through_few_files_and_frames(
    registry: SessionRegistry, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scripted(tmp_path / "read.jsonl", {"calls": [call("read_file", path="a.txt")]}, {"text": "Done."})
    with trio.fail_after(HANG_GUARD):
        way = await in_the_daemon(registry, root, model, monkeypatch)
    way = [*in_the_worker(root, monkeypatch), *way]
    told = "\n".join(f"{frame.file}: {frame.function}" for frame in reversed(way))
    assert len({frame.file for frame in way}) <= FILES_AT_MOST, told
    assert len(way) <= FRAMES_AT_MOST, told
