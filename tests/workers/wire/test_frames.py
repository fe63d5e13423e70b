"""Frames: what goes in comes out, and nothing else does."""

import msgspec
import pytest

from workers.changes.effects import ATTEMPT, ATTEMPTS, CHANGES, Attempt, Change, Effects, GitChange, NodeState
from workers.search.search_inputs import SearchInputs
from workers.web.web_inputs import WebInputs
from workers.wire import frames, messages

CONTEXT = messages.Context("/vault", "test", "group", "python")
DOWN: list[messages.Down] = [
    messages.Start(messages.VERSION, "files", CONTEXT, 7, True, messages.Limits()),
    messages.Start(2, "web", messages.Context("/"), 0, False, messages.Limits(64, 1, 16, 1), ("landlock", "seccomp")),
    messages.Call(2**56 - 1, "read_file", b'{"path": "\xc3\xa9.txt"}'),
    messages.Call(0, "", b"\xff\x00"),
    messages.Probe(),
]
UP: list[messages.Up] = [
    messages.Ready(messages.VERSION, "files", ("read_file",), ("landlock",), ("seccomp",)),
    messages.Ready(messages.VERSION, "files", (), ()),
    messages.Refused("landlock", "the kernel has none"),
    messages.Output(1, "a line\n"),
    messages.Done(1, "text \x00 é 🗝", "text", "first 20 of 200"),
    messages.Done(1, "[]", "json"),
    messages.Failed(1, "not_found", "no such file", {"path": "a.txt", "size": 2**40}),
    messages.Failed(1, "internal", ""),
    messages.Probed((messages.Door("ptrace", True, "EPERM"),)),
]


def payload(message: messages.Down | messages.Up) -> bytes:
    return frames.frame(message)[frames.LENGTH.size :]


def packed(**fields: object) -> bytes:
    return msgspec.msgpack.encode(fields)


@pytest.mark.parametrize("message", [*DOWN, *UP], ids=lambda message: type(message).__name__)
def test_a_message_makes_the_round_trip_in_its_own_direction_alone(message: messages.Down | messages.Up) -> None:
    down, up = frames.decode_down, frames.decode_up
    own, other = (down, up) if message in DOWN else (up, down)
    assert own(payload(message)) == message
    with pytest.raises(frames.FrameError):
        other(payload(message))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_decoded(kind: type[bytes]) -> None:
    assert frames.decode_up(kind(payload(UP[0]))) == UP[0]


@pytest.mark.parametrize("message", [*DOWN, *UP], ids=lambda message: type(message).__name__)
def test_the_length_in_front_is_the_payloads(message: messages.Down | messages.Up) -> None:
    data = frames.frame(message)
    assert frames.payload_length(data[: frames.LENGTH.size]) == len(data) - frames.LENGTH.size


def test_a_frame_at_the_limit_is_made_and_none_over_it() -> None:
    room = frames.FRAME_LIMIT - len(payload(messages.Done(1, "x" * 2**20))) + 2**20
    assert len(payload(messages.Done(1, "x" * room))) == frames.FRAME_LIMIT
    with pytest.raises(frames.FrameTooLarge) as caught:
        frames.frame(messages.Done(1, "x" * (room + 1)))
    assert caught.value.size == frames.FRAME_LIMIT + 1


@pytest.mark.parametrize("length", [1, 255, frames.FRAME_LIMIT])
def test_a_length_within_the_limit_is_read(length: int) -> None:
    assert frames.payload_length(frames.LENGTH.pack(length)) == length


@pytest.mark.parametrize("length", [0, frames.FRAME_LIMIT + 1, 2**31, 2**32 - 1])
def test_a_length_outside_of_the_limits_is_refused(length: int) -> None:
    with pytest.raises(frames.FrameError, match=str(length)):
        frames.payload_length(frames.LENGTH.pack(length))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xc0",
        b"x",
        b"\x91" * 100_000,
        b"\xc7\x04\x01abcd",
        b"\xdb\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        packed(),
        packed(type="Done"),
        packed(type="done", id=1, content="x"),
        packed(type=None, id=1, content="x"),
        packed(type="Done", id=1),
        packed(type="Done", content="x"),
        packed(type="Done", id="1", content="x"),
        packed(type="Done", id=1.0, content="x"),
        packed(type="Done", id=True, content="x"),
        packed(type="Done", id=1, content=b"x"),
        packed(type="Done", id=1, content=None),
        packed(type="Done", id=1, content=2**64 - 1),
        packed(type="Done", id=1, content=float("nan")),
        packed(type="Done", id=1, content="x", form="html"),
        packed(type="Done", id=1, content="x", more=1),
        packed(type="Failed", id=1, kind="rm -rf", message="x"),
        packed(type="Failed", id=1, kind="internal", message="x", details={"a": []}),
        packed(type="Ready", version=1, category="files", tools="read", enforced=[]),
        packed(type="Done", id=1, content="x") + b"\x00",
        packed(type="Done", id=1, content="x")[:-1],
        packed(type="Done", id=1, content="x").replace(b"\xa1x", b"\xa1\xff"),
        packed(type="Done", id=1, content="xyz").replace(b"xyz", b"\xed\xa0\x80"),
    ],
    ids=lambda data: repr(data[:40]),
)
def test_data_that_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.decode_up(data)


@pytest.mark.parametrize(
    "data",
    [
        packed(type="\x1b[2J" * 100_000, id=1),
        packed(type="Done", id=1, content="x", **{"\x1b[2J" * 100_000: 1}),
        packed(type="Failed", id=1, kind="\u202e\n" * 100_000, message="x"),
    ],
)
def test_a_complaint_quotes_little_and_no_control_characters(data: bytes) -> None:
    with pytest.raises(frames.FrameError) as caught:
        frames.decode_up(data)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


TINY = Change("", "times")
TOLD = {
    "changes": (Effects((TINY,) * CHANGES, {}, b""), Effects((TINY,) * (CHANGES + 1), {}, b"")),
    "attempts": tuple(
        Effects((), {}, b"", refused=(Attempt("path", "/" * ATTEMPT),) * number) for number in (ATTEMPTS, ATTEMPTS + 1)
    ),
    "what was tried": tuple(
        Effects((), {}, b"", refused=(Attempt("path", "/" * length),)) for length in (ATTEMPT, ATTEMPT + 1)
    ),
    "a path": tuple(Effects((Change("/" * length, "times"),), {}, b"") for length in (4 * 4095, 4 * 4095 + 1)),
    "a path as it is": tuple(
        Effects((Change("", "times", raw_path=b"/" * length),), {}, b"") for length in (4095, 4096)
    ),
    "the target of a link": tuple(
        Effects((Change("", "added", None, NodeState("link", 0o777, raw_target=b"/" * length)),), {}, b"")
        for length in (4095, 4096)
    ),
}


@pytest.mark.parametrize("field", ["old", "new", "tree"])
@pytest.mark.parametrize("name", ["\x1b[2J", "A" * 40, "0" * 65, "0\n", "\u0665"])
def test_the_name_of_an_object_is_hexadecimal(field: str, name: str) -> None:
    git = msgspec.structs.replace(GitChange("moved", "refs/heads/x"), **{field: name})
    with pytest.raises(frames.FrameError):
        frames.decode_up(payload(messages.Proposed(1, Effects((), {}, b"", git=(git,)))))


@pytest.mark.parametrize(("most", "more"), TOLD.values(), ids=TOLD)
def test_a_worker_tells_no_more_of_a_call_than_may_be_told(most: Effects, more: Effects) -> None:
    assert frames.decode_up(payload(messages.Proposed(1, most))) == messages.Proposed(1, most)
    with pytest.raises(frames.FrameError, match="length <="):
        frames.decode_up(payload(messages.Proposed(1, more)))


def in_context(**fields: str) -> dict[str, object]:
    return {"context": {"working_directory": "/", **fields}}


STARTS = {
    "a directory that is not absolute and of a sane length": [
        in_context(working_directory=each) for each in ("", "vault", "./vault", "/a\x00b", "/" + "x" * 4096)
    ],
    "a name that is not one plain word": [in_context(group=each) for each in ("", "a/b", "a\nb", "a\x1bb", "x" * 129)],
    "limits that no worker can live with": [
        {"limits": each} for each in ({"memory_mb": 63}, {"cpu_s": 0}, {"open_files": 15}, {"file_mb": 0})
    ],
}


@pytest.mark.parametrize("starts", STARTS.values(), ids=STARTS)
def test_a_start_with_nonsense_is_refused(starts: list[dict[str, object]]) -> None:
    for fields in starts:
        with pytest.raises(frames.FrameError):
            frames.decode_down(msgspec.msgpack.encode(msgspec.to_builtins(DOWN[0]) | fields))


@pytest.mark.parametrize("data", [b"\x80", b"\x81\xa7ripgrep\x01", msgspec.msgpack.encode(WebInputs()), b"", b"\xc1"])
def test_inputs_of_a_category_are_decoded_strictly(data: bytes) -> None:
    with pytest.raises(ValueError, match="the inputs that it was given are wrong: "):
        messages.decode_inputs(data, SearchInputs)
    assert messages.decode_inputs(msgspec.msgpack.encode(SearchInputs("/rg")), SearchInputs) == SearchInputs("/rg")
