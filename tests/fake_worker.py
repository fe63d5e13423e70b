"""A worker that misbehaves on purpose: it greets properly, reads one call, then runs the steps it was given.

With a call of `write_file` it is good until that is to be committed: it proposes nothing, and misbehaves then.

The steps are those of tests/corpus/frames.json (side "worker"); the meaning of an object there is the wire's
nearest message. Three tools always work: `ping`, `who` (its pid) and `echo` (its arguments). It is not confined,
so that it can do its worst. It imports little, because most of its life is its start.
"""

import base64
import json
import os
import resource
import signal
import time
from typing import Any

import msgspec

from workers.changes.effects import Effects
from workers.wire import frames, messages

Step = dict[str, Any]
File = os.PathLike[str]

_MAIN = "import base64, json; from tests.fake_worker import Fake; Fake(json.loads(base64.b64decode({plan!r}))).live()"


def fake_command(
    steps: list[Step], memory: File | None = None, *, calls: File | None = None, cured: File | None = None
) -> tuple[str, ...]:
    """Return the command of a fake worker.

    Args:
        steps: what it does with a call.
        memory: a file that counts its starts over restarts.
        calls: a file with one line for each call that was delivered to it.
        cured: once this file exists, it starts as it should.
    """
    from supervisor.pool.spec import worker_command  # of the test's side alone

    files = {"memory": memory, "calls": calls, "cured": cured}
    plan = {"steps": steps} | {name: os.fspath(path) if path else "" for name, path in files.items()}
    return worker_command(_MAIN.format(plan=base64.b64encode(json.dumps(plan).encode()).decode()))


class Fake:
    """One life of a fake worker."""

    def __init__(self, plan: dict[str, Any]) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.steps: list[Step] = plan["steps"]
        self.calls: str = plan["calls"]
        self.cured = bool(plan["cured"]) and os.path.exists(plan["cured"])
        self.life = self._count(plan["memory"])
        self.incoming, self.outgoing = os.dup(0), os.dup(1)
        self.call = messages.Call(0, "", b"")

    @staticmethod
    def _count(memory: str) -> int:
        if not memory:
            return 1
        with open(memory, "a") as file:
            file.write("x")
        return os.path.getsize(memory)

    def live(self) -> None:  # noqa: C901 - one row a kind of call
        start = self.receive()
        assert isinstance(start, messages.Start)
        for step in self.steps:
            if "at_start" in step and not self.cured:
                self.misbehave_at_start(step["at_start"])
        self.send(messages.Ready(messages.VERSION, start.category, (), ()))
        while True:
            message = self.receive()
            if isinstance(message, messages.Decide):
                self.misbehave()
                continue
            if not isinstance(message, messages.Call):
                self.send(messages.Ready(messages.VERSION, start.category, (), ()))
                continue
            self.call = message
            match message.tool:
                case "ping":
                    self.send(messages.Done(message.id, "pong"))
                case "who":
                    self.send(messages.Done(message.id, str(os.getpid())))
                case "late":
                    self.send(messages.Done(message.id, repr(message.queued_s)))
                case "echo":
                    self.send(messages.Done(message.id, message.args.decode()))
                case "write_file":
                    self.send(messages.Proposed(message.id, Effects((), {}, b"")))
                case _:
                    self.misbehave()

    def misbehave(self) -> None:
        self.note(self.call)
        steps = [step for step in self.steps if "at_start" not in step]
        for step in steps or [{"frame": {"id": "$ID", "ok": "hello"}}]:
            self.do(step)

    def note(self, call: messages.Call) -> None:
        if self.calls:
            with open(self.calls, "a") as file:
                file.write(f"{call.tool}\n")

    def misbehave_at_start(self, how: Step) -> None:  # noqa: C901, PLR0912 - one row a kind of start
        match how:
            case {"exit": int(code)}:
                os._exit(code)
            case {"hang": True}:
                signal.pause()
            case {"garbage": True}:
                self.write(b"\xde\xad\xbe\xef" * 8)
                signal.pause()
            case {"ready_version": int(version)}:
                self.send(messages.Ready(version, "files", (), ()))
                signal.pause()
            case {"exit_times": int(times)}:
                if self.life <= times:
                    os._exit(3)
            case {"ready_category": str(category)}:
                self.send(messages.Ready(messages.VERSION, category, (), ()))
                signal.pause()
            case {"ready_tools": names}:
                self.send(messages.Ready(messages.VERSION, "files", tuple(names), ()))
            case {"ready_twice": True}:
                self.send(messages.Ready(messages.VERSION, "files", (), ()))
            case {"ready_then_exit": int(code)}:
                self.send(messages.Ready(messages.VERSION, "files", (), ()))
                os._exit(code)
            case {"probed": True}:
                self.send(messages.Probed(()))
                signal.pause()
            case {"close": "stdout"}:
                self.act(how)
                signal.pause()
            case {"confine_fails": True}:
                self.send(messages.Refused("landlock", "the kernel has no Landlock"))
                os._exit(1)
            case _:
                raise ValueError(how)

    def receive(self) -> messages.Down:
        length = frames.payload_length(self.read(frames.LENGTH.size))
        return frames.decode_down(self.read(length))

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = os.read(self.incoming, size - len(data))
            if not part:
                os._exit(0)
            data += part
        return data

    def send(self, message: messages.Up) -> None:
        self.write(frames.frame(message))

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.outgoing, view) :]

    # --- the steps -------------------------------------------------------------------------------------------

    def payload(self, value: Any) -> bytes:
        """Encode what a corpus object stands for; the id is filled in."""
        if not isinstance(value, dict):
            return msgspec.msgpack.encode(value)
        match value.get("type"):
            case {"$repeat": [str(text), int(times)]}:
                value = value | {"type": text * times}
        number: Any = value.get("id")
        number = {"$ID": self.call.id, "$NEXT_ID": self.call.id + 1, "other": self.call.id ^ 1}.get(
            number if isinstance(number, str) else "", number
        )
        body: dict[str, Any] = {} if number is None else {"id": number}
        if "ok" in value:
            body |= {"type": "Done", "content": value["ok"]}
        if "error" in value:
            error = value["error"]
            body |= {"type": body.get("type", "Failed")} | (error if isinstance(error, dict) else {"kind": error})
        if "progress" in value:
            body |= {"type": "Output", "text": value["progress"]}
        return msgspec.msgpack.encode(body | {key: value[key] for key in value if key in ("event", "text", "type")})

    def framed(self, payload: bytes) -> bytes:
        return frames.LENGTH.pack(len(payload)) + payload

    def at_limit(self, extra: int) -> bytes:
        """A Done whose payload is exactly the limit plus `extra` bytes."""
        empty = len(self.payload({"id": "$ID", "ok": "x" * 2**20})) - 2**20  # the same width of length prefixes
        return self.framed(self.payload({"id": "$ID", "ok": "x" * (frames.FRAME_LIMIT - empty + extra)}))

    def bytes_of(self, step: Step) -> bytes:
        match step:
            case {"frame": value}:
                return self.framed(self.payload(value))
            case {"frame_cut": [value, count]}:
                return self.framed(self.payload(value))[:count]
            case {"frame_len": int(length)}:
                return frames.LENGTH.pack(length % 2**32)
            case _:
                raise ValueError(step)

    def do(self, step: Step) -> None:  # noqa: C901, PLR0912 - one row a kind of step
        match step:
            case {"frame_len": int(length), "send_body": True}:
                self.write(frames.LENGTH.pack(length % 2**32))
                for _ in range(length // 2**20):
                    self.write(bytes(2**20))
            case {"frame": _} | {"frame_cut": _} | {"frame_len": _}:
                self.write(self.bytes_of(step))
            case {"dribble": [inner, _]}:
                # "One byte at a time" at the pipe's own pace: the reader sees them one by one, nobody sleeps.
                self.dribble(inner)
            case {"two_in_one": [first, second]}:
                self.write(self.bytes_of(first) + self.bytes_of(second))
            case {"repeat_frame": [value, int(times)]}:
                data = self.framed(self.payload(value))
                for _ in range(times // 1000):
                    self.write(data * 1000)
            case {"frame_raw_json": text}:
                self.write(self.framed(self.twin(text)))
            case {"frame_raw_b64": _}:
                body = {"type": b"Done", "id": self.call.id, "content": "bad\xff".encode("latin-1")}
                raw = b"\x83" + b"".join(self.str_of(k.encode()) + self.any_of(v) for k, v in body.items())
                self.write(self.framed(raw))
            case {"payload_b64": str(text)}:
                self.write(self.framed(base64.b64decode(text)))
            case {"trailing": [value, str(text)]}:
                self.write(self.framed(self.payload(value) + text.encode()))
            case {"progress_forever": True}:
                data = self.framed(self.payload({"id": "$ID", "progress": "x"})) * 1000
                while True:
                    self.write(data)
            case {"frame_big_ok": int(size)}:
                self.write(self.framed(self.payload({"id": "$ID", "ok": "x" * size})))
            case {"frame_at_limit": True}:
                self.write(self.at_limit(0))
            case {"frame_at_limit_plus_one": True}:
                self.write(self.at_limit(1))
            case {"raw_b64": str(text)}:
                self.write(base64.b64decode(text))
            case {"raw_text": str(text)}:
                self.write(text.encode())
            case {"unrehearsable": str(why)}:
                direct = self.call.without_rehearsal
                self.send(messages.Done(self.call.id, "done") if direct else messages.Unrehearsable(self.call.id, why))
            case {"library_print": str(text)}:
                os.dup2(2, 1)
                print(text, flush=True)  # noqa: T201 - that is the case
            case _:
                self.act(step)

    @staticmethod
    def str_of(data: bytes) -> bytes:
        return bytes([0xA0 + len(data)]) + data

    def any_of(self, value: Any) -> bytes:
        return self.str_of(value) if isinstance(value, bytes) else msgspec.msgpack.encode(value)

    def twin(self, text: Any) -> bytes:
        """Return the msgpack twin of a JSON oddity."""
        done = {"type": "Done", "id": self.call.id}
        if isinstance(text, dict):
            return b"\x91" * 100_000
        if "NaN" in text:
            return msgspec.msgpack.encode(done | {"content": float("nan")})
        if "1e999999" in text:
            return msgspec.msgpack.encode(done | {"content": float("inf")})
        if "ud800" in text:
            raw = [self.str_of(b"type"), self.str_of(b"Done"), self.str_of(b"id"), self.any_of(self.call.id)]
            return b"\x83" + b"".join(raw) + self.str_of(b"content") + self.str_of(b"\xed\xa0\x80")
        if text.count('"ok"') > 1:
            pairs = [(b"type", b"Done"), (b"id", self.call.id), (b"content", b"a"), (b"content", b"b")]
            return b"\x84" + b"".join(self.str_of(key) + self.any_of(value) for key, value in pairs)
        return msgspec.msgpack.encode(done | {"content": 2**64 - 1})

    def dribble(self, inner: Step) -> None:
        if "frame_len" in inner:
            self.write(frames.LENGTH.pack(inner["frame_len"]))
            while True:
                self.write(b"x")
                select_nothing(0.05)
        for byte in self.bytes_of(inner):
            self.write(bytes([byte]))
            select_nothing(0.002)

    def act(self, step: Step) -> None:  # noqa: C901, PLR0912 - one row a kind of step
        match step:
            case {"exit": int(code)}:
                os._exit(code)
            case {"signal": str(name)}:
                os.kill(os.getpid(), getattr(signal, name))
                signal.pause()
            case {"hang": True}:
                signal.pause()
            case {"stop": True}:
                os.kill(os.getpid(), signal.SIGSTOP)
            case {"spin": True}:
                while True:
                    pass
            case {"gil_hold": True}:
                import ctypes

                ctypes.PyDLL(None).sleep(3600)
            case {"ignore": names}:
                for name in names:
                    signal.signal(getattr(signal, name), signal.SIG_IGN)
            case {"close": "stdout"}:
                os.close(self.outgoing)
                os.close(1)
            case {"close": "stdin"}:
                os.close(self.incoming)
                os.close(0)
            case {"close": "stderr"}:
                os.close(2)
            case {"exec": list(argv)}:
                os.dup2(self.incoming, 0)
                os.dup2(self.outgoing, 1)
                os.execv(argv[0], argv)
            case {"spawn_orphan": how}:
                self.spawn_orphan(how)
            case {"stderr_repeat": [char, int(count)]}:
                for _ in range(count // 2**20):
                    os.write(2, char.encode() * 2**20)
            case {"stderr_repeat_forever": True}:
                if os.fork() == 0:
                    while True:
                        os.write(2, b"x" * 2**16)
            case {"stderr_b64": str(text)}:
                os.write(2, base64.b64decode(text))
            case {"stderr_text": str(text)}:
                os.write(2, text.encode())
            case _:
                raise ValueError(step)

    def spawn_orphan(self, how: str) -> None:
        """Double-fork a process that would live for ever; how says what it holds on to."""
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        if how == "setsid":
            os.setsid()
        if os.fork():
            os._exit(0)
        if not how.endswith("_stdout"):
            os.close(self.outgoing)
            os.close(1)
        if how == "floods_stdout":
            self.do({"progress_forever": True})
        while True:
            signal.pause()


def select_nothing(seconds: float) -> None:
    """Let time pass: the case is about slowness itself."""
    time.sleep(seconds)
