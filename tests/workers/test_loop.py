"""The worker's side: in this process over pipes, and as a process where its end is the point."""

import fcntl
import io
import mmap
import os
import select
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from supervisor.pool.template_process import worker_command
from tests.raw_worker import receive, send
from workers.changes.effects import Change, Effects, NodeState
from workers.errors import RehearsalRefused, ToolError
from workers.loop import Pipe, by_name, serve
from workers.tool import Args, Proposal, Replaced, Result, ResultWithNote, ToolContext, tool
from workers.tree.root import Root
from workers.wire import frames, messages

HANG = 60.0
"""Seconds after which a test that waits is stuck."""

LARGE = "0123456789abcdef" * 2**17

ANSWERING_WORKER = """
from workers.loop import Pipe
from workers.wire import messages
for number in range(3):
    Pipe(0, 1).send(messages.Done(number, "x" * 100_000))
"""
"""Each answer is larger than a pipe is where the kernel grants no more."""

TOOLS_IN_A_WORKER = """
import os, sys
from workers import __main__ as worker
from workers.catalog import CATEGORIES, Category
from workers.tool import Args, tool

class None_(Args, frozen=True):
    pass

@tool(None_, effect=False)
def bug(args, context):
    "Divide by zero."
    return str(1 // 0)

@tool(None_, effect=False)
def chatter(args, context):
    "Print where frames once were."
    print("a library says hello", flush=True)
    os.write(1, b"and again")
    return repr(sys.stdin.read())

@tool(None_, effect=False)
def hunger(args, context):
    "Ask for more memory than there is."
    return str(len(bytearray(2**40)))

files = CATEGORIES["files"]
categories = {"files": Category("files", (bug, chatter, hunger), files.confinement)}
code = 1
try:
    code = worker.run(int(sys.argv[-1]), categories)
except BaseException:
    sys.excepthook(*sys.exc_info())
os._exit(code)
"""


class Text(Args, frozen=True):
    text: str = ""


@tool(Text, effect=False)
def echo(args: Text, context: ToolContext) -> str:
    """Return the text."""
    return args.text


@tool(Text, effect=False)
def listing(args: Text, context: ToolContext) -> ResultWithNote:
    """Return JSON and a note."""
    return ResultWithNote([{"name": args.text}], "first 1 of 2")


@tool(Text, effect=False)
def decline(args: Text, context: ToolContext) -> str:
    """Say no."""
    raise ToolError("not_found", "no such thing; try another" + args.text, path="a.txt")


@tool(Text, effect=False)
def starve(args: Text, context: ToolContext) -> str:
    """Run out of memory."""
    raise MemoryError


@tool(Text, effect=False)
def talk(args: Text, context: ToolContext) -> str:
    """Show progress."""
    for number in range(3):
        context.output(str(number))
    return "done"


@tool(Text, effect=False)
def burst(args: Text, context: ToolContext) -> str:
    """Return more than a frame holds."""
    return "x" * (frames.FRAME_LIMIT + 1)


@tool(Text, effect=False)
def broken(args: Text, context: ToolContext) -> str:
    """Have a bug."""
    return str(1 // 0)


BEFORE, AFTER = NodeState("file", 0o644, 6), NodeState("file", 0o644, 3)
EFFECTS = Effects((Change("a", "modified", BEFORE, AFTER),), {"modified": 1}, b"digest", 3)


class Written(Proposal):
    """A proposal that notes what becomes of it."""

    def __init__(self, fate: list[str], answer: Callable[[], Result | Proposal]) -> None:
        super().__init__(EFFECTS)
        self._fate = fate
        self._answer = answer

    def originals(self, each: int, total: int) -> Iterator[Replaced | bytes]:
        """Yield three names; none of the content where not even a byte is wanted."""
        yield Replaced("d", None, NodeState("dir", 0o755))
        yield Replaced("a", BEFORE, AFTER, kept=each >= BEFORE.size)
        if each >= BEFORE.size:
            yield b"old"
            yield b"old"
        if not total:
            raise ToolError("conflict", "it is another now", path="a")
        yield Replaced("link", NodeState("link", 0o777, target="x"), None, b"link", {"user.a": b"b"})

    def expected(self) -> Result:
        """Return what is told beforehand."""
        return "it will be"

    def commit(self) -> Result:
        """Note it."""
        self._fate.append("committed")
        result = self._answer()
        assert not isinstance(result, Proposal)
        return result

    def close(self) -> None:
        self._fate.append("closed")


@tool(Text, effect=True)
def propose(args: Text, context: ToolContext) -> Proposal:
    """Propose a change; `text` names the tool that a commit ends as."""
    assert isinstance(context.engine, list)
    answers = {tool.name: tool for tool in (echo, listing, decline, broken)}
    return Written(context.engine, lambda: answers[args.text].run(Text("done"), context))


@tool(Text, effect=True)
def impossible(args: Text, context: ToolContext) -> str:
    """Be one that cannot be rehearsed."""
    if context.without_rehearsal:
        return f"run as it is, network {context.network}"
    raise RehearsalRefused("there is no overlay here")


TOOLS = by_name([echo, listing, decline, starve, talk, burst, broken, propose, impossible])


class Supervisor:
    """The other ends of the pipes of a loop that runs in a thread."""

    def __init__(self, root: Path) -> None:
        incoming, self.outgoing = os.pipe()
        self.incoming, outgoing = os.pipe()
        self._ends = [incoming, outgoing, self.incoming]
        self._root = os.open(root, os.O_PATH)
        self.error: BaseException | None = None
        self.pipe = Pipe(incoming, outgoing)
        self.fate: list[str] = []
        """What became of proposals."""
        self._context = ToolContext(messages.Context(str(root)), Root(self._root, 0o022), engine=self.fate)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            serve(self.pipe, TOOLS, self._context)
        except (frames.FrameError, ArithmeticError) as error:
            self.error = error

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.outgoing, view) :]

    def call(self, name: str, arguments: bytes = b"{}", number: int = 7) -> list[messages.Up]:
        """Return every message up to the final answer."""
        self.write(frames.frame(messages.Call(number, name, arguments)))
        answers = [self.read()]
        while isinstance(answers[-1], messages.Output):
            answers.append(self.read())
        return answers

    def say(self, message: messages.Down) -> None:
        self.write(frames.frame(message))

    def read(self) -> messages.Up:
        length = frames.payload_length(self._exactly(frames.LENGTH.size))
        return frames.decode_up(self._exactly(length))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            assert select.select([self.incoming], [], [], HANG)[0], "no answer comes"
            part = os.read(self.incoming, size - len(data))
            assert part, "the loop has ended"
            data += part
        return data

    def hang_up(self) -> None:
        if self.outgoing >= 0:
            os.close(self.outgoing)
            self.outgoing = -1
        self._thread.join(timeout=HANG)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.hang_up()
        for end in (*self._ends, self._root):
            os.close(end)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path)
    yield supervisor
    supervisor.close()


ANSWERS: list[tuple[str, bytes, list[messages.Up]]] = [
    ("echo", b'{"text": "hello"}', [messages.Done(7, "hello")]),
    ("echo", msgspec.json.encode({"text": LARGE}), [messages.Done(7, LARGE)]),
    ("listing", b'{"text": "a"}', [messages.Done(7, '[{"name":"a"}]', "json", "first 1 of 2")]),
    ("decline", b"{}", [messages.Failed(7, "not_found", "no such thing; try another", {"path": "a.txt"})]),
    ("talk", b"{}", [*(messages.Output(7, str(number)) for number in range(3)), messages.Done(7, "done")]),
]


@pytest.mark.parametrize(("name", "arguments", "answers"), ANSWERS, ids=lambda value: str(value)[:20])
def test_a_call_is_answered(supervisor: Supervisor, name: str, arguments: bytes, answers: list[messages.Up]) -> None:
    assert supervisor.call(name, arguments) == answers


def test_a_call_is_answered_with_its_id(supervisor: Supervisor) -> None:
    assert supervisor.call("echo", number=2**56 - 1) == [messages.Done(2**56 - 1, "")]


def test_an_error_does_not_flood(supervisor: Supervisor) -> None:
    (answer,) = supervisor.call("decline", msgspec.json.encode({"text": "x" * 2**20}))
    assert isinstance(answer, messages.Failed)
    assert len(answer.message) == 2**16


def test_running_out_of_memory_while_encoding_is_an_answer(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frames.frame_in_place

    def starving(message: messages.Up) -> bytearray:
        if not isinstance(message, messages.Done):
            return frame(message)
        raise MemoryError

    monkeypatch.setattr(frames, "frame_in_place", starving)
    supervisor.write(frames.frame(messages.Call(7, "echo", b"{}")))
    answer = supervisor.read()
    assert isinstance(answer, messages.Failed)
    assert answer.kind == "resource_limit"


FAILURES = [
    ("starve", b"{}", "resource_limit", ""),
    ("burst", b"{}", "too_large", "too large"),
    ("rm_rf", b"{}", "unknown_tool", "echo"),
    *(
        ("echo", arguments, "invalid_arguments", "")
        for arguments in (b"", b"[]", b"{", b'{"text": 1}', b'{"more": 1}', b"\xff", b"[" * 100_000)
    ),
]


@pytest.mark.parametrize(("name", "arguments", "kind", "says"), FAILURES, ids=lambda value: str(value)[:20])
def test_a_call_that_fails_is_answered_and_the_loop_goes_on(
    supervisor: Supervisor, name: str, arguments: bytes, kind: str, says: str
) -> None:
    (answer,) = supervisor.call(name, arguments)
    assert isinstance(answer, messages.Failed)
    assert answer.kind == kind
    assert says in answer.message
    assert str(frames.FRAME_LIMIT) not in answer.message
    assert supervisor.call("echo", b'{"text": "still here"}') == [messages.Done(7, "still here")]


def test_two_calls_in_one_write_are_two_answers(supervisor: Supervisor) -> None:
    supervisor.write(frames.frame(messages.Call(1, "echo", b"{}")) + frames.frame(messages.Call(2, "echo", b"{}")))
    assert [supervisor.read(), supervisor.read()] == [messages.Done(1, ""), messages.Done(2, "")]


def test_a_call_that_comes_in_pieces_is_one_call(supervisor: Supervisor) -> None:
    for byte in frames.frame(messages.Call(7, "echo", b'{"text": "bytes"}')):
        supervisor.write(bytes([byte]))
    assert supervisor.read() == messages.Done(7, "bytes")


def test_the_end_of_file_between_calls_ends_the_loop_in_peace(supervisor: Supervisor) -> None:
    supervisor.call("echo")
    supervisor.hang_up()
    assert supervisor.error is None


ECHO = frames.frame(messages.Call(7, "echo", b"{}"))
START = messages.Start(messages.VERSION, "files", messages.Context("/"), 3, True, messages.Limits())
BROKEN: list[tuple[bytes, type[Exception], str]] = [
    *((ECHO[:cut], frames.FrameError, "middle of a frame") for cut in (1, 3, 4, 10, -1)),
    (frames.frame(START), frames.FrameError, "Start out of turn"),
    (ECHO + frames.frame(messages.Decide(7, commit=True)), frames.FrameError, "Decide out of turn"),
    (ECHO + frames.frame(messages.Keep(7, 1, 1)), frames.FrameError, "Keep out of turn"),
    (frames.LENGTH.pack(frames.FRAME_LIMIT + 1), frames.FrameError, ""),
    (frames.LENGTH.pack(3) + b"abc", frames.FrameError, ""),
    (frames.frame(messages.Call(7, "broken", b"{}")), ZeroDivisionError, ""),
]
"""Bytes that end the loop with an error: half a frame, messages that nobody says, a bug in a tool."""


@pytest.mark.parametrize(("data", "kind", "says"), BROKEN)
def test_a_message_that_is_no_call_and_a_bug_end_the_loop(
    supervisor: Supervisor, data: bytes, kind: type[Exception], says: str
) -> None:
    supervisor.write(data)
    supervisor.hang_up()
    assert isinstance(supervisor.error, kind)
    assert says in str(supervisor.error)


# --- what is proposed ------------------------------------------------------------------------------------------


def held(supervisor: Supervisor, ends_as: str = "echo") -> None:
    assert supervisor.call("propose", msgspec.json.encode({"text": ends_as})) == [
        messages.Proposed(7, EFFECTS, messages.Done(7, "it will be"))
    ]
    assert supervisor.fate == []


DECIDED = [
    ("echo", True, messages.Done(7, "done")),
    ("listing", True, messages.Done(7, '[{"name":"done"}]', "json", "first 1 of 2")),
    ("decline", True, messages.Failed(7, "not_found", "no such thing; try anotherdone", {"path": "a.txt"})),
    ("echo", False, messages.Done(7, "")),
]


@pytest.mark.parametrize(("ends_as", "commit", "answer"), DECIDED)
def test_a_proposal_is_committed_if_that_is_decided_and_closed_after_the_answer(
    supervisor: Supervisor, ends_as: str, commit: bool, answer: messages.Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(supervisor, ends_as)
    send = supervisor.pipe.send

    def noting(message: messages.Up) -> None:
        supervisor.fate.append("answered")
        send(message)

    monkeypatch.setattr(supervisor.pipe, "send", noting)
    supervisor.say(messages.Decide(7, commit=commit))
    assert supervisor.read() == answer
    assert supervisor.call("echo") == [messages.Done(7, "")]
    assert supervisor.fate == [*(["committed"] if commit else []), "answered", "closed", "answered"]


def test_old_content_is_sent_before_the_decision(supervisor: Supervisor) -> None:
    held(supervisor)
    supervisor.say(messages.Keep(7, 6, 6))
    assert [supervisor.read() for _ in range(6)] == [
        messages.Original(7, "d", None, NodeState("dir", 0o755)),
        messages.Original(7, "a", BEFORE, AFTER, kept=True),
        messages.Piece(7, b"old"),
        messages.Piece(7, b"old"),
        messages.Original(7, "link", NodeState("link", 0o777, target="x"), None, b"link", {"user.a": b"b"}),
        messages.Kept(7, 3, 6, 0),
    ]
    supervisor.say(messages.Decide(7, commit=True))
    assert supervisor.read() == messages.Done(7, "done")


def test_files_whose_content_is_not_kept_are_counted(supervisor: Supervisor) -> None:
    held(supervisor)
    supervisor.say(messages.Keep(7, 5, 5))
    assert [supervisor.read() for _ in range(4)][-1] == messages.Kept(7, 3, 0, 1)


def test_originals_that_are_something_else_now_are_a_failure_and_the_call_is_still_to_be_decided(
    supervisor: Supervisor,
) -> None:
    held(supervisor)
    supervisor.say(messages.Keep(7, 5, 0))
    answers = [supervisor.read() for _ in range(3)]
    assert answers[-1] == messages.Failed(7, "conflict", "it is another now", {"path": "a"})
    supervisor.say(messages.Decide(7, commit=False))
    assert supervisor.read() == messages.Done(7, "")
    supervisor.hang_up()
    assert supervisor.fate == ["closed"]


OUT_OF_TURN: list[tuple[str, list[messages.Down], str]] = [
    ("the end of file", [], ""),
    ("the end of file after the originals", [messages.Keep(7, 1, 1)], ""),
    ("a second call", [messages.Call(8, "echo", b"{}")], "Call while"),
    ("a probe", [messages.Probe()], "Probe while"),
    ("the decision of another call", [messages.Decide(8, commit=True)], "Decide while"),
    ("another call's originals", [messages.Keep(8, 1, 1)], "Keep while"),
    ("the originals twice", [messages.Keep(7, 1, 1), messages.Keep(7, 1, 1)], "Keep while"),
]


@pytest.mark.parametrize(("sent", "says"), [row[1:] for row in OUT_OF_TURN], ids=[row[0] for row in OUT_OF_TURN])
def test_a_proposal_is_closed_by_the_end_of_file_and_by_all_but_its_own_decision(
    supervisor: Supervisor, sent: list[messages.Down], says: str
) -> None:
    held(supervisor)
    for message in sent:
        supervisor.say(message)
    supervisor.hang_up()
    expected = frames.FrameError(f"{says} a call was to be decided") if says else None
    assert repr(supervisor.error) == repr(expected)
    assert supervisor.fate == ["closed"]


def test_a_bug_in_a_commit_ends_the_loop(supervisor: Supervisor) -> None:
    held(supervisor, "broken")
    supervisor.say(messages.Decide(7, commit=True))
    supervisor.hang_up()
    assert isinstance(supervisor.error, ZeroDivisionError)


def test_a_call_that_cannot_be_rehearsed_says_why_and_runs_when_it_is_let(supervisor: Supervisor) -> None:
    assert supervisor.call("impossible") == [messages.Unrehearsable(7, "there is no overlay here")]
    supervisor.say(messages.Call(8, "impossible", b"{}", without_rehearsal=True, network=True))
    assert supervisor.read() == messages.Done(8, "run as it is, network True")


# --- a process -------------------------------------------------------------------------------------------------


def living(root: Path, sent: list[messages.Down], main: str | None = None) -> tuple[list[Any], int, str]:
    """Live a worker's life: say what is to be `sent`, hang up; return its answers, exit code and stderr."""
    descriptor = os.open(root, os.O_PATH)
    command = worker_command() if main is None else worker_command(main)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
        cwd="/",
        pass_fds=(descriptor,),
    ) as process:
        for message in sent:
            starts = isinstance(message, messages.Start)
            send(process, msgspec.structs.replace(message, root_fd=descriptor) if starts else message)
        assert process.stdin
        process.stdin.close()
        answers = list(iter(lambda: receive(process), None))
        assert process.stderr
        said = process.stderr.read().decode()
    os.close(descriptor)
    return answers, process.returncode, said


def start(version: int = messages.VERSION, category: str = "files") -> messages.Start:
    return messages.Start(version, category, messages.Context("/"), 0, True, messages.Limits())


def test_a_worker_leaves_in_peace_at_the_end_of_file_whether_it_was_started_or_not(tmp_path: Path) -> None:
    assert living(tmp_path, []) == ([], 0, "")
    answers, code, said = living(tmp_path, [start()])
    assert [type(answer) for answer in answers] == [messages.Ready]
    assert (code, said) == (0, "")


@pytest.mark.parametrize(
    "first",
    [
        start(version=messages.VERSION + 1),
        start(category="nonsense"),
        messages.Call(1, "read_file", b"{}"),
        messages.Probe(),
    ],
    ids=repr,
)
def test_a_worker_serves_nobody_who_does_not_begin_with_a_proper_start(tmp_path: Path, first: messages.Down) -> None:
    answers, code, _said = living(tmp_path, [first])
    speaks = f"this worker speaks version {messages.VERSION} of the wire"
    assert (answers, code) == ([messages.Refused("version", speaks)], 1)


DEATHS: list[tuple[messages.Down, str | None, str]] = [
    (messages.Call(7, "bug", b"{}"), TOOLS_IN_A_WORKER, "ZeroDivisionError"),
    (start(), None, "Start out of turn"),
]


@pytest.mark.parametrize(("message", "main", "says"), DEATHS, ids=["a bug in a tool", "a broken protocol"])
def test_an_error_ends_the_worker_with_its_traceback(
    message: messages.Down, main: str | None, says: str, tmp_path: Path
) -> None:
    answers, code, said = living(tmp_path, [start(), message], main)
    assert [type(answer) for answer in answers] == [messages.Ready]
    assert code != 0
    assert says in said


def test_output_of_a_tool_does_not_reach_the_frames(tmp_path: Path) -> None:
    answers, code, said = living(tmp_path, [start(), messages.Call(7, "chatter", b"{}")], TOOLS_IN_A_WORKER)
    assert answers[1:] == [messages.Done(7, "''")]
    assert code == 0
    assert "a library says hello" in said
    assert "and again" in said


def test_a_worker_that_runs_out_of_memory_lives_on(tmp_path: Path) -> None:
    calls: list[messages.Down] = [messages.Call(number, "hunger", b"{}") for number in (1, 2)]
    answers, code, _said = living(tmp_path, [start(), *calls], TOOLS_IN_A_WORKER)
    assert [(answer.id, answer.kind) for answer in answers[1:]] == [(1, "resource_limit"), (2, "resource_limit")]
    assert code == 0


def test_an_answer_is_whole_where_its_worker_was_stopped_while_the_pipe_was_full() -> None:
    with subprocess.Popen(worker_command(ANSWERING_WORKER), stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        size = fcntl.fcntl(worker.stdout, fcntl.F_GETPIPE_SZ)
        written = b""
        while struct.unpack("i", written or bytes(4))[0] <= size - mmap.PAGESIZE:  # one page may be full in part
            written = fcntl.ioctl(worker.stdout, termios.FIONREAD, bytes(4))
        os.kill(worker.pid, signal.SIGSTOP)
        os.waitpid(worker.pid, os.WUNTRACED)
        os.kill(worker.pid, signal.SIGCONT)
        answers = io.BytesIO(worker.stdout.read())
    found = [frames.decode_up(payload) for payload in frames.payloads(answers.read)]
    assert found == [messages.Done(number, "x" * 100_000) for number in range(3)]


LARGE_ANSWERS: list[messages.Done] = [
    messages.Done(2**56 - 1, "x" * 2**20),
    messages.Done(0, "x" * (2**17 + 1), "json", "a note", ("this", "that")),
    messages.Done(7, "\N{EURO SIGN}\0\N{GRINNING FACE}" * 2**16, "text", "\xa7content\xa0"),
    messages.Done(int.from_bytes(b"content"), "\N{DIAERESIS}" * 2**17),
]


@pytest.mark.parametrize(
    "answer", LARGE_ANSWERS, ids=["ASCII", "all fields", "wider", "an id that looks like the field"]
)
def test_a_large_answer_arrives_as_it_is_with_what_comes_after_it(answer: messages.Done) -> None:
    read, write = os.pipe()
    after = messages.Done(1, "after")

    def answers() -> None:
        with os.fdopen(write, "wb"):
            Pipe(-1, write).send(answer)
            Pipe(-1, write).send(after)

    with os.fdopen(read, "rb") as up:
        threading.Thread(target=answers).start()
        assert [frames.decode_up(payload) for payload in frames.payloads(up.read)] == [answer, after]


def test_a_content_that_fits_no_frame_is_told_before_anything_is_written() -> None:
    fits = frames.FRAME_LIMIT - len(frames.around(messages.Done(7, ""), 2**20)[0]) + frames.LENGTH.size
    assert frames.around(messages.Done(7, ""), fits)
    with pytest.raises(frames.FrameTooLarge):
        frames.around(messages.Done(7, ""), fits + 1)
    with pytest.raises(frames.FrameTooLarge):
        Pipe(-1, -1).send(messages.Done(7, "x" * (fits + 1)))
    with pytest.raises(UnicodeEncodeError):
        Pipe(-1, -1).send(messages.Done(7, "\ud800" * 2**17))


def test_originals_are_written_together_and_all_before_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(_file: int, data: memoryview) -> int:
        written.append(bytes(data))
        return len(data)

    monkeypatch.setattr(os, "write", write)
    pipe = Pipe(-1, -1)
    originals = [messages.Original(1, f"f{number:06}", BEFORE, kept=True) for number in range(10_000)]
    for each in originals:
        pipe.send(each)
        pipe.send(messages.Piece(1, b"before"))
    pipe.send(messages.Kept(1, 10_000, 60_000, 0))
    assert len(written) < 2 + len(b"".join(written)) / 2**16
    payloads = iter(b"".join(written).split(frames.frame(messages.Piece(1, b"before"))))
    assert [next(payloads) for _ in originals] == [frames.frame(each) for each in originals]
    assert list(payloads) == [frames.frame(messages.Kept(1, 10_000, 60_000, 0))]
