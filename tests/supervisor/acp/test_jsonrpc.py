"""JSON-RPC: every line gives messages or says what is wrong with it."""

import json
from dataclasses import dataclass

import msgspec
import pytest

from supervisor.acp import jsonrpc
from supervisor.acp.jsonrpc import TOO_LONG, Bad, ErrorObject, Id, LineBuffer, Notification, Request, Response, TooLong
from tests.each_row import each_row


@dataclass(frozen=True)
class Fault:
    """A line that is no message, and the error that answers it."""

    name: str
    line: bytes
    code: int
    id: Id = None


PARSE = jsonrpc.PARSE_ERROR
INVALID = jsonrpc.INVALID_REQUEST

FAULTS = [
    Fault("nothing", b"", PARSE),
    Fault("spaces", b"   ", PARSE),
    Fault("no JSON", b"hello", PARSE),
    Fault("zero bytes", b"\0\0\0\0", PARSE),
    Fault("half an object", b'{"jsonrpc":"2.0","id":1', PARSE),
    Fault("two objects", b'{"jsonrpc":"2.0","id":1,"method":"a"}{}', PARSE),
    Fault("a byte order mark", b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"a"}', PARSE),
    Fault("NaN", b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":NaN}}', PARSE),
    Fault("a method that is not UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE),
    Fault("half a surrogate pair in the id", b'{"jsonrpc":"2.0","id":"\\ud800","method":"a"}', PARSE),
    Fault("the other half in the parameters", b'{"jsonrpc":"2.0","id":1,"method":"a","params":["\\udc00"]}', PARSE),
    Fault("nested too deeply", b'{"jsonrpc":"2.0","id":1,"params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", PARSE),
    Fault("nested objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, PARSE),
    Fault("null", b"null", INVALID),
    Fault("a number", b"17", INVALID),
    Fault("a string", b'"initialize"', INVALID),
    Fault("an empty object", b"{}", INVALID),
    Fault("no version", b'{"id":1,"method":"a"}', INVALID, 1),
    Fault("another version", b'{"jsonrpc":"1.0","id":1,"method":"a"}', INVALID, 1),
    Fault("a version that is a number", b'{"jsonrpc":2.0,"id":1,"method":"a"}', INVALID, 1),
    Fault("only a version", b'{"jsonrpc":"2.0"}', INVALID),
    Fault("only an id", b'{"jsonrpc":"2.0","id":"x"}', INVALID, "x"),
    Fault("a method that is a number", b'{"jsonrpc":"2.0","id":1,"method":5}', INVALID, 1),
    Fault("a method that is null", b'{"jsonrpc":"2.0","id":1,"method":null}', INVALID, 1),
    Fault("an id that is an array", b'{"jsonrpc":"2.0","id":[1],"method":"a"}', INVALID),
    Fault("an id that is an object", b'{"jsonrpc":"2.0","id":{},"method":"a"}', INVALID),
    Fault("an id that is a boolean", b'{"jsonrpc":"2.0","id":true,"method":"a"}', INVALID),
    Fault("an id with a fraction", b'{"jsonrpc":"2.0","id":1.5,"method":"a"}', INVALID),
    Fault("an id beyond all numbers", b'{"jsonrpc":"2.0","id":1e999,"method":"a"}', INVALID),
    Fault("an id of 5000 digits", b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"a"}', INVALID),
    Fault("an empty batch", b"[]", INVALID),
    Fault("a batch over the limit", json.dumps([0] * (jsonrpc.BATCH_LIMIT + 1)).encode(), INVALID),
    Fault("half a batch", b'[{"jsonrpc":"2.0","id":1,"method":"a"}', PARSE),
    Fault("a batch nested too deeply", b"[" * 100_000, PARSE),
    Fault("a batch in a batch", b'[[{"jsonrpc":"2.0","id":1,"method":"a"}]]', INVALID),
]


@each_row("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_what_is_no_message_is_answered_with_an_error_under_its_id_in_a_short_line_of_ascii(fault: Fault) -> None:
    [bad] = jsonrpc.decode(fault.line)
    assert isinstance(bad, Bad)
    assert (bad.error.code, bad.id, bad.error.kind) == (fault.code, fault.id, "bad_request")
    line = jsonrpc.failure(bad.id, bad.error)
    assert (line.count(b"\n"), line.isascii()) == (1, True)
    assert len(line) < 500


NO = ErrorObject(1, "no")
MESSAGES = {
    "a request": (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":1}}', Request(1, "a", b'{"b":1}')),
    "without parameters": (b'{"jsonrpc":"2.0","id":1,"method":"a"}', Request(1, "a", b"{}")),
    "with parameters that are null": (b'{"jsonrpc":"2.0","id":1,"method":"a","params": null}', Request(1, "a", b"{}")),
    "with an id of text": (b'{"jsonrpc":"2.0","id":"x","method":"a"}', Request("x", "a", b"{}")),
    "with an empty id": (b'{"jsonrpc":"2.0","id":"","method":"a"}', Request("", "a", b"{}")),
    "with a negative id": (b'{"jsonrpc":"2.0","id":-1,"method":"a"}', Request(-1, "a", b"{}")),
    "with a very large id": (b'{"jsonrpc":"2.0","id":%d,"method":"a"}' % 10**26, Request(10**26, "a", b"{}")),
    "with the id null": (b'{"jsonrpc":"2.0","id":null,"method":"a"}', Request(None, "a", b"{}")),
    "with more than the specification names": (b'{"jsonrpc":"2.0","id":1,"method":"a","x":[]}', Request(1, "a", b"{}")),
    "with spaces around it": (b' {"jsonrpc": "2.0", "id": 1, "method": "a"} \r', Request(1, "a", b"{}")),
    "a notification": (b'{"jsonrpc":"2.0","method":"a","params":[1]}', Notification("a", b"[1]")),
    "a good answer": (b'{"jsonrpc":"2.0","id":1,"result":{"b":1}}', Response(1, b'{"b":1}', None)),
    "an answer of null": (b'{"jsonrpc":"2.0","id":1,"result":null}', Response(1, b"null", None)),
    "a bad answer": (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}', Response(1, None, NO)),
    "a bad answer with data": (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no","data":[2]}}',
        Response(1, None, ErrorObject(1, "no", [2])),
    ),
    "both good and bad": (
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}',
        Response(1, None, NO),
    ),
    "a bad answer to nothing": (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}',
        Response(None, None, NO),
    ),
}


@each_row(("line", "message"), MESSAGES.values(), ids=list(MESSAGES))
def test_a_message_is_read(line: bytes, message: jsonrpc.Message) -> None:
    assert jsonrpc.decode(line) == [message]


def test_parameters_are_left_as_they_came() -> None:
    [message] = jsonrpc.decode(b'{"jsonrpc":"2.0","id":1,"method":"a","params": {"b": 1.0,  "b":2, "c":"\xff"}}')
    assert isinstance(message, Request)
    assert message.params == b'{"b": 1.0,  "b":2, "c":"\xff"}'


def test_a_batch_gives_its_messages_in_order() -> None:
    line = (
        b'[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}, {"jsonrpc":"2.0","id":2,"result":3}]'
    )
    assert jsonrpc.decode(line) == [Request(1, "a", b"{}"), Notification("b", b"{}"), Response(2, b"3", None)]


def test_a_bad_member_of_a_batch_is_answered_alone() -> None:
    first, second, third = jsonrpc.decode(b' [1, {"jsonrpc":"2.0","id":7,"method":"a"}, {"id":8,"method":"a"}]')
    assert isinstance(first, Bad)
    assert second == Request(7, "a", b"{}")
    assert isinstance(third, Bad)
    assert third.id == 8


def test_a_batch_may_be_as_long_as_the_limit() -> None:
    each = b'{"jsonrpc":"2.0","method":"a"}'
    assert len(jsonrpc.decode(b"[" + b",".join([each] * jsonrpc.BATCH_LIMIT) + b"]")) == jsonrpc.BATCH_LIMIT


class _Params(msgspec.Struct):
    name: str
    number: int = 0


WRONG = {
    "an array": b"[1]",
    "null": b"null",
    "a field missing": b"{}",
    "a field of another type": b'{"name":1}',
    "a number that is none": b'{"name":"a","number":1e999}',
    "bytes that are no text": b'{"name":"\xff"}',
    "something nested too deeply": b'{"name":"a","other":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@each_row("params", WRONG.values(), ids=list(WRONG))
def test_wrong_parameters_are_an_error_and_no_exception(params: bytes) -> None:
    error = jsonrpc.decoded(params, _Params)
    assert isinstance(error, ErrorObject)
    assert (error.code, error.kind) == (jsonrpc.INVALID_PARAMS, "invalid_params")


def test_parameters_are_read_and_what_is_unknown_in_them_is_ignored() -> None:
    assert jsonrpc.decoded(b'{"name":"a","unknown":{}}', _Params) == _Params("a")


def test_text_of_a_sender_is_repeated_shortly_and_in_ascii() -> None:
    text = jsonrpc.quoted(ValueError("\x1b[31m\udc80 Grüße." + "x" * 1000))
    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 1000


KINDS = {
    "ours": ({"kind": "busy"}, "busy"),
    "none": (None, ""),
    "no object": (["kind"], ""),
    "no text": ({"kind": 1}, ""),
}


@each_row(("data", "kind"), KINDS.values(), ids=list(KINDS))
def test_the_kind_of_anybody_s_error_can_be_asked_for(data: object, kind: str) -> None:
    assert ErrorObject(1, "no", data).kind == kind


SENT = {
    "a request": (jsonrpc.request("ask-1", "a", {"b": 1}), Request("ask-1", "a", b'{"b":1}')),
    "a notification": (jsonrpc.notification("a", {"b": 1}), Notification("a", b'{"b":1}')),
    "a result": (jsonrpc.result(1, {}), Response(1, b"{}", None)),
    "a result that is null": (jsonrpc.result(1, None), Response(1, b"null", None)),
    "a failure": (
        jsonrpc.failure(None, jsonrpc.fault(jsonrpc.NOT_FOUND, "No.", "not_found", where=1)),
        Response(None, None, ErrorObject(jsonrpc.NOT_FOUND, "No.", {"kind": "not_found", "where": 1})),
    ),
    "a text of several lines": (
        jsonrpc.notification("a", "b\nc\r\n\u2028"),
        Notification("a", '"b\\nc\\r\\n\u2028"'.encode()),
    ),
}


@each_row(("line", "message"), SENT.values(), ids=list(SENT))
def test_a_message_that_is_sent_stands_on_one_line_and_is_read_again(line: bytes, message: jsonrpc.Message) -> None:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert jsonrpc.decode(line[:-1]) == [message]


@pytest.mark.parametrize("error", [b'"no"', b'{"code":1}', b"[]"])
def test_an_answer_that_cannot_be_read_is_still_an_answer(error: bytes) -> None:
    [answer] = jsonrpc.decode(b'{"jsonrpc":"2.0","id":"ask-1","error":' + error + b"}")
    assert isinstance(answer, jsonrpc.Response)
    assert (answer.id, answer.result) == ("ask-1", None)
    assert answer.error is not None


def test_an_answer_with_a_null_error_is_its_result() -> None:
    [answer] = jsonrpc.decode(b'{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}')
    assert answer == jsonrpc.Response(1, b'{"a":1}', None)


# --- lines ------------------------------------------------------------------------------------------------------------

LIMIT = 8


def fed(*chunks: bytes) -> list[bytes | TooLong]:
    buffer = LineBuffer(LIMIT)
    return [line for chunk in chunks for line in buffer.feed(chunk)]


CUTS: dict[str, tuple[tuple[bytes, ...], list[bytes | TooLong]]] = {
    "one line": ((b"abc\n",), [b"abc"]),
    "nothing": ((b"",), []),
    "an empty line": ((b"\n",), [b""]),
    "a line without its end": ((b"abc",), []),
    "several lines in a chunk": ((b"a\nb\nc\n",), [b"a", b"b", b"c"]),
    "a line in several chunks": ((b"a", b"b", b"", b"c\n"), [b"abc"]),
    "an end in a chunk of its own": ((b"abc", b"\n"), [b"abc"]),
    "the rest of one and the beginning of the next": ((b"ab", b"c\nde", b"f\n"), [b"abc", b"def"]),
    "a carriage return stays": ((b"a\r\n",), [b"a\r"]),
    "bytes that are no text": ((b"\xff\x00\n",), [b"\xff\x00"]),
    "exactly the limit": ((b"12345678\n",), [b"12345678"]),
    "one byte over it": ((b"123456789\n",), [TOO_LONG]),
    "over it in pieces": ((b"12345", b"6789", b"0", b"\n"), [TOO_LONG]),
    "the next one in the same chunk": ((b"123456789\nok\n",), [TOO_LONG, b"ok"]),
    "the next one in another chunk": ((b"123456789", b"\nok", b"\n"), [TOO_LONG, b"ok"]),
    "two in a row": ((b"123456789\n123456789\nok\n",), [TOO_LONG, TOO_LONG, b"ok"]),
    "an empty one after it": ((b"123456789\n\n",), [TOO_LONG, b""]),
}


@each_row(("chunks", "lines"), CUTS.values(), ids=list(CUTS))
def test_lines_come_out_whole_and_one_over_the_limit_costs_itself_alone(
    chunks: tuple[bytes, ...], lines: list[bytes | TooLong]
) -> None:
    assert fed(*chunks) == lines


@each_row("size", range(1, 12))
def test_chunks_of_any_size_give_the_same_lines(size: int) -> None:
    data = b"ab\n\n1234567\nlong long long\n12345678\n"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert fed(*chunks) == [b"ab", b"", b"1234567", TOO_LONG, b"12345678"]


def test_a_line_without_end_is_reported_before_it_ends_and_only_once() -> None:
    buffer = LineBuffer(LIMIT)
    assert list(buffer.feed(b"123456789")) == [TOO_LONG]
    assert [line for _ in range(1000) for line in buffer.feed(b"x" * 1000)] == []


def test_a_line_that_was_given_up_is_not_held() -> None:
    buffer = LineBuffer(LIMIT)
    for _ in range(100):
        list(buffer.feed(b"x" * 1000))
    assert len(buffer._rest) <= LIMIT
