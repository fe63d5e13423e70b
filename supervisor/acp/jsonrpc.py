"""JSON-RPC 2.0 as the Agent Client Protocol frames it: UTF-8, one message a line, none inside another.

Rule: pure; bytes in, messages out, and the reverse. Whatever a line holds, `decode` returns something for each message
in it, a `Bad` with the error to answer where it is none; it never raises. Batches are taken and never sent. A line that
is too long is reported once, as soon as it is, and dropped up to its end; the next one is as good as any other.

Source: https://www.jsonrpc.org/specification, and "Transports" of https://agentclientprotocol.com.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

LINE_LIMIT: Final = 16 * 2**20 + 2**16
"""Bytes of one line: the largest arguments of a tool (`wire.FRAME_LIMIT`) as a JSON string of nothing but quotes."""

BATCH_LIMIT: Final = 1000
"""Messages in one batch."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
NOT_FOUND: Final = -32002
CANCELLED: Final = -32800

_QUOTED: Final = 200
"""Characters of a decoder's complaint that are repeated: it may quote what the sender wrote."""

Id = int | str | None

_T = TypeVar("_T")


class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request failed. Ours always have `data` {"kind": ..., ...}."""

    code: int
    message: str
    data: Any = None

    @property
    def kind(self) -> str:
        """The machine-readable reason, "" where the sender gave none."""
        kind = self.data.get("kind", "") if isinstance(self.data, dict) else ""
        return kind if isinstance(kind, str) else ""


class Request(msgspec.Struct, frozen=True):
    """Wants an answer under its id. `params` is JSON, still undecoded."""

    id: Id
    method: str
    params: bytes


class Notification(msgspec.Struct, frozen=True):
    """Wants no answer. `params` is JSON, still undecoded."""

    method: str
    params: bytes


class Response(msgspec.Struct, frozen=True):
    """Answers a request of ours: with a result (JSON, undecoded) or an error."""

    id: Id
    result: bytes | None
    error: ErrorObject | None


class Bad(msgspec.Struct, frozen=True):
    """Something that is no message; what to answer, under which id."""

    id: Id
    error: ErrorObject


Message = Request | Notification | Response


class _Envelope(msgspec.Struct, frozen=True):
    jsonrpc: str = ""
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: msgspec.Raw | UnsetType = UNSET
    result: msgspec.Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType | None = UNSET


class _Identified(msgspec.Struct, frozen=True):
    """What can be said of a message that is not well formed."""

    id: int | str | None = None


class _Keys(msgspec.Struct, frozen=True):
    """What a message that is not well formed has."""

    method: msgspec.Raw | UnsetType = UNSET
    result: msgspec.Raw | UnsetType = UNSET
    error: msgspec.Raw | UnsetType = UNSET


_envelope: Final[msgspec.json.Decoder[_Envelope]] = msgspec.json.Decoder(_Envelope)
_identified: Final[msgspec.json.Decoder[_Identified]] = msgspec.json.Decoder(_Identified)
_keys: Final[msgspec.json.Decoder[_Keys]] = msgspec.json.Decoder(_Keys)
_batch: Final[msgspec.json.Decoder[list[msgspec.Raw]]] = msgspec.json.Decoder(list[msgspec.Raw])
_encoder: Final = msgspec.json.Encoder()
_FAILURES: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(line: bytes) -> list[Message | Bad]:
    """Return the messages of one line, without its end; several only for a batch."""
    if not line.lstrip().startswith(b"["):
        return [_message(line)]
    try:
        batch = _batch.decode(line)
    except _FAILURES as error:
        return [Bad(None, _unreadable(error))]
    if not 0 < len(batch) <= BATCH_LIMIT:
        return [Bad(None, fault(INVALID_REQUEST, f"A batch holds 1 to {BATCH_LIMIT} messages.", "bad_request"))]
    return [_message(bytes(each)) for each in batch]


def _message(text: bytes) -> Message | Bad:
    try:
        envelope = _envelope.decode(text)
    except msgspec.ValidationError as error:
        return _misshapen(text, error)
    except _FAILURES as error:
        return Bad(None, _unreadable(error))
    known = None if isinstance(envelope.id, UnsetType) else envelope.id
    answer = _response_of(envelope, known) if isinstance(envelope.method, UnsetType) else None
    if answer is not None:
        return answer
    if envelope.jsonrpc != "2.0":
        return Bad(known, fault(INVALID_REQUEST, 'A message needs "jsonrpc": "2.0".', "bad_request"))
    if isinstance(envelope.method, UnsetType):
        return Bad(known, fault(INVALID_REQUEST, "A message has a method, or an id and a result.", "bad_request"))
    return _request_of(envelope, envelope.method)


def _misshapen(text: bytes, error: msgspec.ValidationError) -> Response | Bad:
    if _is_response(text):
        return Response(_id_of(text), None, fault(PARSE_ERROR, "The response cannot be read.", "bad_answer"))
    return Bad(_id_of(text), fault(INVALID_REQUEST, f"Not a JSON-RPC message: {quoted(error)}.", "bad_request"))


def _request_of(envelope: _Envelope, method: str) -> Request | Notification:
    params = b"{}" if isinstance(envelope.params, UnsetType) else bytes(envelope.params)
    if params == b"null":  # what the official Python SDK sends where there are none
        params = b"{}"
    if isinstance(envelope.id, UnsetType):
        return Notification(method, params)
    return Request(envelope.id, method, params)


def _response_of(envelope: _Envelope, known: Id) -> Response | None:
    """Return what answers one of ours, however badly: an answer is never answered."""
    if not isinstance(envelope.error, UnsetType) and envelope.error is not None:
        return Response(known, None, envelope.error)
    if not isinstance(envelope.result, UnsetType):
        return Response(known, bytes(envelope.result), None)
    if not isinstance(envelope.error, UnsetType):
        return Response(known, None, fault(PARSE_ERROR, "The response has neither result nor error.", "bad_answer"))
    return None


def _is_response(text: bytes) -> bool:
    """Say whether a message that is not well formed answers one of ours: then it is not answered itself."""
    try:
        keys = _keys.decode(text)
    except _FAILURES:
        return False
    return isinstance(keys.method, UnsetType) and not (
        isinstance(keys.result, UnsetType) and isinstance(keys.error, UnsetType)
    )


def _id_of(text: bytes) -> Id:
    try:
        return _identified.decode(text).id
    except _FAILURES:
        return None


def _unreadable(error: Exception) -> ErrorObject:
    return fault(PARSE_ERROR, f"Not JSON: {quoted(error)}. One message stands on one line.", "bad_request")


def decoded(params: bytes, as_type: type[_T]) -> _T | ErrorObject:
    """Return a message's parameters as `as_type`, or the error to answer."""
    try:
        return msgspec.json.decode(params, type=as_type)
    except _FAILURES as error:
        return fault(INVALID_PARAMS, f"Wrong parameters: {quoted(error)}.", "invalid_params")


def quoted(error: Exception) -> str:
    """Return an error's text, short and in ASCII, without its full stop."""
    return str(error)[:_QUOTED].rstrip(".").encode("unicode_escape", "surrogatepass").decode("ascii")


def fault(code: int, message: str, kind: str, **details: Any) -> ErrorObject:
    """Return an error with a kind."""
    return ErrorObject(code, message, {"kind": kind, **details})


def request(number: Id, method: str, params: Any) -> bytes:
    """Return a request as a line."""
    return _line({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: Any) -> bytes:
    """Return a notification as a line."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def result(number: Id, value: Any) -> bytes:
    """Return the good answer to request `number` as a line."""
    return _line({"jsonrpc": "2.0", "id": number, "result": value})


def failure(number: Id, error: ErrorObject) -> bytes:
    """Return the bad answer to request `number` as a line."""
    return _line({"jsonrpc": "2.0", "id": number, "error": error})


def _line(message: dict[str, Any]) -> bytes:
    return _encoder.encode(message) + b"\n"


# --- lines ------------------------------------------------------------------------------------------------------------


class TooLong:
    """Stands for a line over the limit."""


TOO_LONG: Final = TooLong()


class LineBuffer:
    """Takes chunks, gives lines; holds never more than the limit and one chunk.

    Args:
        limit: bytes that a line may have, without its end.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Yield the lines that end in `chunk`, without their ends, and `TOO_LONG` for one that is over the limit."""
        first, *others = chunk.split(b"\n")
        yield from self._extend(first)
        for piece in others:
            if self._dropping:
                self._dropping = False
            else:
                yield bytes(self._rest)
            self._rest.clear()
            yield from self._extend(piece)

    def _extend(self, piece: bytes) -> Iterator[TooLong]:
        if self._dropping:
            return
        if len(self._rest) + len(piece) > self._limit:
            self._rest = bytearray()
            self._dropping = True
            yield TOO_LONG
        else:
            self._rest += piece
