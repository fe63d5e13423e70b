"""A worker that misbehaves on purpose: it greets properly, reads one call, then runs the steps it was given.

With a call of `write_file` it is good until that is to be committed: it proposes nothing, and misbehaves then. Asked
to send what that would replace, it says that it has sent one name.

The steps are those of tests/corpus/frames.json (side "worker"); the meaning of an object there is the wire's
nearest message. Three tools always work: `ping`, `who` (its pid) and `echo` (its arguments). It is not confined,
so that it can do its worst, and works in the root, by which all that it starts can be found.
"""

import base64
import json
import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from workers.changes.effects import Effects
from workers.confine import die_with
from workers.confine.template import fork_workers
from workers.wire import frames, messages

Step = dict[str, Any]
File = os.PathLike[str]


class FakeInputs(messages.Inputs, frozen=True):
    """The plan of a fake worker, as JSON."""

    plan: str


def fake(
    steps: list[Step], memory: File | None = None, *, calls: File | None = None, cured: File | None = None
) -> dict[str, Any]:
    """Return what a child spec has of fake workers: their command, a template that forks them, and their plan.

    Args:
        steps: what it does with a call.
        memory: a file that counts its starts over restarts.
        calls: a file with one line for each call that was delivered to it.
        cured: once this file exists, it starts as it should.
    """
    from supervisor.pool.template_process import worker_command  # of the test's side alone
    from tests.raw_worker import template_of

    files = {"memory": memory, "calls": calls, "cured": cured}
    plan = {"steps": steps} | {name: os.fspath(path) if path else "" for name, path in files.items()}
    command = worker_command("from tests.fake_worker import main; main()")
    return {"command": command, "template": template_of(command), "inputs": FakeInputs(json.dumps(plan))}


def main() -> None:
    """Live a fake worker's life; where fd 0 is a socket this process is the template of those that do."""
    supervisor = int(sys.argv[-1])
    die_with(supervisor)
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        fork_workers(lambda: die_with(supervisor), {})
    Fake().live()


class Fake:
    """One life of a fake worker."""

    def __init__(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.incoming, self.outgoing = os.dup(0), os.dup(1)
        start = self.receive()
        assert isinstance(start, messages.Start)
        os.fchdir(start.root_fd)
        self.category = start.category
        plan = json.loads(messages.decode_inputs(start.inputs, FakeInputs).plan)
        self.steps: list[Step] = plan["steps"]
        self.calls: str = plan["calls"]
        self.cured = bool(plan["cured"]) and os.path.exists(plan["cured"])
        self.life = self._count(plan["memory"])
        self.call = messages.Call(0, "", b"")

    @staticmethod
    def _count(memory: str) -> int:
        if not memory:
            return 1
        with open(memory, "a") as file:
            file.write("x")
        return os.path.getsize(memory)

    def live(self) -> None:
        for step in self.steps:
            if "at_start" in step and not self.cured:
                self.misbehave_at_start(step["at_start"])
        self.ready(category=self.category)
        while True:
            message = self.receive()
            if isinstance(message, messages.Decide):
                self.misbehave()
                continue
            if isinstance(message, messages.Keep):
                self.send(messages.Kept(message.id, 1))
                continue
            if not isinstance(message, messages.Call):
                self.ready(category=self.category)
                continue
            self.call = message
            if message.tool in ANSWERS:
                self.send(messages.Done(message.id, ANSWERS[message.tool](message)))
            elif message.tool == "write_file":
                self.send(messages.Proposed(message.id, Effects((), {}, b"")))
            else:
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

    def ready(self, version: int = messages.VERSION, category: str = "files", tools: tuple[str, ...] = ()) -> None:
        self.send(messages.Ready(version, category, tools, ()))

    def misbehave_at_start(self, how: Step) -> None:
        match how:
            case {"ready_tools": names}:
                self.ready(tools=tuple(names))
                return
            case {"ready_twice": True}:
                self.ready()
                return
            case {"exit_times": int(times)} if self.life > times:
                return
            case {"exit_times": _}:
                os._exit(3)
            case {"ready_then_exit": int(code)}:
                self.ready()
                os._exit(code)
            case {"confine_fails": True}:
                self.send(messages.Refused("landlock", "the kernel has no Landlock"))
                os._exit(1)
            case {"ready_version": int(version)}:
                self.ready(version)
            case {"ready_category": str(category)}:
                self.ready(category=category)
            case {"probed": True}:
                self.send(messages.Probed(()))
            case _:
                self.do(how)
        signal.pause()

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
        """Return what a step writes."""
        name, value = next(iter(step.items()))
        return BYTES[name](self, value)

    def do(self, step: Step) -> None:
        match step:
            case {"frame_len": int(length), "send_body": True}:
                self.write(self.bytes_of(step))
                for _ in range(length // 2**20):
                    self.write(bytes(2**20))
            case {"dribble": [inner, _]}:
                # "One byte at a time" at the pipe's own pace: the reader sees them one by one, nobody sleeps.
                self.dribble(inner)
            case {"progress_forever": True}:
                data = self.framed(self.payload({"id": "$ID", "progress": "x"})) * 1000
                while True:
                    self.write(data)
            case {"unrehearsable": str(why)}:
                direct = self.call.without_rehearsal
                self.send(messages.Done(self.call.id, "done") if direct else messages.Unrehearsable(self.call.id, why))
            case {"library_print": str(text)}:
                os.dup2(2, 1)
                print(text, flush=True)  # noqa: T201 - that is the case
            case _ if step.keys() & BYTES.keys():
                self.write(self.bytes_of(step))
            case _:
                self.act(step)

    def raw_done(self, *contents: bytes) -> bytes:
        """Return a Done with these contents, bytes that need be no text."""
        pairs: list[tuple[bytes, bytes | int]] = [
            (b"type", b"Done"),
            (b"id", self.call.id),
            *((b"content", each) for each in contents),
        ]
        return bytes([0x80 + len(pairs)]) + b"".join(_raw(key) + _raw(value) for key, value in pairs)

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
            return self.raw_done(b"\xed\xa0\x80")
        if text.count('"ok"') > 1:
            return self.raw_done(b"a", b"b")
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


def _raw(value: bytes | int) -> bytes:
    """Return a short string of msgpack, or a number."""
    return bytes([0xA0 + len(value)]) + value if isinstance(value, bytes) else msgspec.msgpack.encode(value)


ANSWERS: Final[Mapping[str, Callable[[messages.Call], str]]] = {
    "ping": lambda _: "pong",
    "who": lambda _: str(os.getpid()),
    "late": lambda call: repr(call.queued_s),
    "echo": lambda call: call.args.decode(),
}
"""Tools that always work."""

BYTES: Final[Mapping[str, Callable[[Fake, Any], bytes]]] = {
    "frame": lambda fake, value: fake.framed(fake.payload(value)),
    "frame_cut": lambda fake, cut: fake.framed(fake.payload(cut[0]))[: cut[1]],
    "frame_len": lambda _, length: frames.LENGTH.pack(length % 2**32),
    "two_in_one": lambda fake, steps: b"".join(map(fake.bytes_of, steps)),
    "repeat_frame": lambda fake, many: fake.framed(fake.payload(many[0])) * many[1],
    "frame_raw_json": lambda fake, text: fake.framed(fake.twin(text)),
    "frame_raw_b64": lambda fake, _: fake.framed(fake.raw_done(b"bad\xff")),
    "payload_b64": lambda fake, text: fake.framed(base64.b64decode(text)),
    "trailing": lambda fake, both: fake.framed(fake.payload(both[0]) + both[1].encode()),
    "frame_big_ok": lambda fake, size: fake.framed(fake.payload({"id": "$ID", "ok": "x" * size})),
    "frame_at_limit": lambda fake, _: fake.at_limit(0),
    "frame_at_limit_plus_one": lambda fake, _: fake.at_limit(1),
    "raw_b64": lambda _, text: base64.b64decode(text),
    "raw_text": lambda _, text: text.encode(),
    "garbage": lambda *_: b"\xde\xad\xbe\xef" * 8,
}
"""Steps that are nothing but what they write."""


def select_nothing(seconds: float) -> None:
    """Let time pass: the case is about slowness itself."""
    time.sleep(seconds)
