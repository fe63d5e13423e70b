"""Frames: messages as bytes on a pipe, in a file, or in a datagram.

Rule: a frame is four bytes of length (big endian) and that many bytes of msgpack. It is never empty and never above
`FRAME_LIMIT`, which both sides check before they allocate.
"""

import struct
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final, TypeVar

import msgspec

from workers.wire.messages import Brokered, Connect, Done, Down, Up

FRAME_LIMIT: Final = 8 * 2**20
"""Bytes of payload. Above the largest text a tool returns (2 MiB) and the largest a model writes (4 MiB)."""

_T = TypeVar("_T")

LENGTH: Final = struct.Struct(">I")

_QUOTED: Final = 200
"""Characters of the decoder's complaint that a `FrameError` repeats: it can quote what the sender wrote."""

_EMPTY_CONTENT: Final = b"\xa7content\xa0"
"""What only the tag and the id precede, neither of which can look so."""

_encoder: Final = msgspec.msgpack.Encoder()
_down: Final[msgspec.msgpack.Decoder[Down]] = msgspec.msgpack.Decoder(Down)
_connect: Final[msgspec.msgpack.Decoder[Connect]] = msgspec.msgpack.Decoder(Connect)
_brokered: Final[msgspec.msgpack.Decoder[Brokered]] = msgspec.msgpack.Decoder(Brokered)


class FrameError(Exception):
    """The bytes are not a frame of this protocol. The sender cannot be trusted with another."""


class FrameTooLarge(FrameError):
    """The message does not fit `FRAME_LIMIT`. Nothing was sent."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a frame of {size} bytes is over the limit of {FRAME_LIMIT}")
        self.size = size


def frame(message: Down | Up) -> bytes:
    """Return `message` with its length in front.

    Raises:
        FrameTooLarge: the payload is above `FRAME_LIMIT`.
    """
    payload = _encoder.encode(message)
    if len(payload) > FRAME_LIMIT:
        raise FrameTooLarge(len(payload))
    return LENGTH.pack(len(payload)) + payload


def frame_in_place(message: Up) -> bytearray:
    """Do as `frame` does, without a copy of the payload, which takes 60 us of 1 MiB."""
    whole = bytearray(LENGTH.size)
    _encoder.encode_into(message, whole, LENGTH.size)
    size = len(whole) - LENGTH.size
    if size > FRAME_LIMIT:
        raise FrameTooLarge(size)
    LENGTH.pack_into(whole, 0, size)
    return whole


def around(answer: Done, size: int) -> tuple[bytes, bytes]:
    """Return what a frame has before and after the content of an answer, which takes `size` bytes; raises as `frame`.

    msgpack (spec.md): a str of at most 2**32-1 bytes is 0xdb, four bytes of length (big endian), and its UTF-8.
    """
    before, key, after = _encoder.encode(msgspec.structs.replace(answer, content="")).partition(_EMPTY_CONTENT)
    before += key[:-1] + b"\xdb" + LENGTH.pack(size)
    length = len(before) + size + len(after)
    if length > FRAME_LIMIT:
        raise FrameTooLarge(length)
    return LENGTH.pack(length) + before, after


def framed(payload: bytes) -> bytes:
    """Return a payload with its length in front; raises like `frame`."""
    if len(payload) > FRAME_LIMIT:
        raise FrameTooLarge(len(payload))
    return LENGTH.pack(len(payload)) + payload


def payload_length(header: bytes | bytearray | memoryview) -> int:
    """Return the length that four header bytes announce.

    Raises:
        FrameError: zero, or above `FRAME_LIMIT`: nothing of the payload may be read.
    """
    length: int = LENGTH.unpack(header)[0]
    if not 0 < length <= FRAME_LIMIT:
        raise FrameError(f"a frame of {length} bytes (1 to {FRAME_LIMIT} are allowed)")
    return length


def payloads(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield the payloads of a file of frames, whole ones only; `read` returns as many bytes as it is asked for.

    Raises:
        FrameError: it is no file of frames, or it was cut.
    """
    while header := read(LENGTH.size):
        if len(header) < LENGTH.size:
            raise FrameError("the file ends in the middle of a frame")
        size = payload_length(header)
        payload = read(size)
        if len(payload) < size:
            raise FrameError("the file ends in the middle of a frame")
        yield payload


def datagram(message: Connect | Brokered) -> bytes:
    """Return a message between a worker and the broker as it is sent."""
    return _encoder.encode(message)


def decoded(decoder: msgspec.msgpack.Decoder[_T], payload: bytes | bytearray | memoryview) -> _T:
    """Decode a payload.

    Raises:
        FrameError: it is none of the decoder's messages.
    """
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        complaint = ascii(str(error)[:_QUOTED])[1:-1]  # without a codec, which a locked worker could not import
        raise FrameError(f"not a message: {complaint}") from error


decode_down: Final = partial(decoded, _down)
"""Decode what the supervisor said; raises as `decoded`."""

decode_connect: Final = partial(decoded, _connect)
"""Decode what a worker asks of the broker."""

decode_brokered: Final = partial(decoded, _brokered)
"""Decode what the broker says."""


def decode_up(payload: bytes | bytearray | memoryview) -> Up:
    """Decode what a worker said; raises as `decoded`."""
    return decoded(_up(), payload)


@cache
def _up() -> msgspec.msgpack.Decoder[Up]:
    """Return a decoder that workers do not need, and that is half of what importing this takes."""
    return msgspec.msgpack.Decoder(Up)
