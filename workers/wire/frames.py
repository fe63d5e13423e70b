"""Frames: messages as bytes on a pipe, in a file, or in a datagram.

Rule: a frame is four bytes of length (big endian) and that many bytes of msgpack. It is never empty and never above
`FRAME_LIMIT`, which both sides check before they allocate.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from workers.wire.messages import Brokered, Connect, Down, Up

FRAME_LIMIT: Final = 8 * 2**20
"""Bytes of payload. Above the largest text a tool returns (2 MiB) and the largest a model writes (4 MiB)."""

LENGTH: Final = struct.Struct(">I")

_QUOTED: Final = 200
"""Characters of the decoder's complaint that a `FrameError` repeats: it can quote what the sender wrote."""

_encoder: Final = msgspec.msgpack.Encoder()
_down: Final[msgspec.msgpack.Decoder[Down]] = msgspec.msgpack.Decoder(Down)
_up: Final[msgspec.msgpack.Decoder[Up]] = msgspec.msgpack.Decoder(Up)
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
    return framed(_encoder.encode(message))


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


def decode_down(payload: bytes | bytearray | memoryview) -> Down:
    """Decode what the supervisor said.

    Raises:
        FrameError: not one message of this direction.
    """
    message: Down = decoded(_down, payload)
    return message


def decode_up(payload: bytes | bytearray | memoryview) -> Up:
    """Decode what a worker said.

    Raises:
        FrameError: not one message of this direction.
    """
    message: Up = decoded(_up, payload)
    return message


def datagram(message: Connect | Brokered) -> bytes:
    """Return a message between a worker and the broker as it is sent."""
    return _encoder.encode(message)


def decode_connect(payload: bytes) -> Connect:
    """Decode what a worker asks of the broker.

    Raises:
        FrameError: it is no `Connect`.
    """
    message: Connect = decoded(_connect, payload)
    return message


def decode_brokered(payload: bytes) -> Brokered:
    """Decode what the broker says.

    Raises:
        FrameError: it is neither `Connected` nor `Declined`.
    """
    message: Brokered = decoded(_brokered, payload)
    return message


def decoded(decoder: msgspec.msgpack.Decoder[Any], payload: bytes | bytearray | memoryview) -> Any:
    """Decode a payload.

    Raises:
        FrameError: it is none of the decoder's messages.
    """
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        complaint = ascii(str(error)[:_QUOTED])[1:-1]  # without a codec, which a locked worker could not import
        raise FrameError(f"not a message: {complaint}") from error
