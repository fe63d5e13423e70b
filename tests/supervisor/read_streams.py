"""Answers of models' servers read without a socket: whole, cut and damaged, and the requests that they lead to."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
import pytest

from supervisor.agent.accepted_reply import accepted
from supervisor.agent.models.model import ModelRequest, Progress, Reply
from supervisor.agent.models.wire_format import WireFormat
from supervisor.agent.transcript import Transcript
from supervisor.errors import ModelError
from supervisor.journal.facts import CallEnded, Fact, Replied, ReplyOrigin, TurnEnded, TurnStarted, decode, encode
from tests.supervisor.model_requests import TOOL

PROVIDER: Final = "someone"
_PARTS: Final = [
    *(b'"', b"{", b"}", b"\n\n", b"null", b"7", b"\xff", b"\r", b"[", b",", b"event: error\n", b"", b"true", b'""'),
    *(b"\xf0\x9f", b"\\ud83d", b"\n{", b"\r\n\r\n", b'"parts"', b'"functionCall"', b'"content"', b'"message"'),
    *(b"data: [DONE]\n\n", b'"index"', b'"id"', b"[]", b"{}", b"-1", b'"x"', b"1e9", b":", b"\\"),
]


def read(wire: WireFormat, *pieces: str | bytes, show: Callable[[Progress], None] = lambda _: None) -> Reply | None:
    """Return the reply that an answer is, which comes in these pieces; None where it breaks off.

    Raises:
        ModelError: as a reader does.
    """
    decoder, reader = wire.decoder(), wire.reader(show)
    for piece in pieces:
        for event in decoder.feed(piece.encode() if isinstance(piece, str) else piece):
            reader.feed(event)
    for event in decoder.end():
        reader.feed(event)
    if not (reader.complete or reader.stopped):
        return None
    reply = reader.reply()
    sent = reply.origin or ReplyOrigin("", "")
    return msgspec.structs.replace(reply, origin=msgspec.structs.replace(sent, provider=PROVIDER, model="m"))


def whole(wire: WireFormat, *pieces: str | bytes, shown: list[Progress] | None = None) -> Reply:
    reply = read(wire, *pieces, show=(shown if shown is not None else []).append)
    assert reply is not None
    return reply


def failure(wire: WireFormat, text: str | bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read(wire, text)
    return caught.value


def request_after(*replies: Reply) -> ModelRequest:
    """Return the request that follows replies, by way of the journal; a reply without calls ends a turn."""
    transcript = Transcript()

    def record(*facts: Fact) -> None:
        for fact in facts:
            transcript.apply(decode(encode(fact)))

    record(TurnStarted(1, "go"))
    for given in replies:
        number, reply = transcript.turn, accepted(given, transcript.ids)
        record(Replied(number, transcript.step, reply.content, reply.stop_reason, reply.usage, reply.origin))
        record(*[CallEnded(number, call.id, call.name, True, "found") for call in reply.calls])
        if not reply.calls:
            record(TurnEnded(number, "ok", reply.text), TurnStarted(number + 1, "and now?"))
    return ModelRequest("Be brief.", [TOOL], transcript.messages, 1, origins=transcript.origins)


def next_body(wire: WireFormat, *replies: Reply, provider: str = PROVIDER, model: str = "m") -> dict[str, Any]:
    """Return the body of that request, as the server reads it."""
    body = wire.body(request_after(*replies), model, provider)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(body))
    return found


def damaged(whole_answer: bytes, times: int, seed: int = 7) -> Iterator[bytes]:
    """Yield an answer with random damage, so many times."""
    chance = random.Random(seed)
    for _ in range(times):
        spoiled = bytearray(whole_answer)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(spoiled))
            spoiled[at : at + chance.randint(0, 12)] = chance.choice(_PARTS)
        yield bytes(spoiled)


def shuffled(events: Sequence[str], times: int, seed: int = 7) -> Iterator[str]:
    """Yield events in other orders, some left out and some twice, so many times."""
    chance = random.Random(seed)
    for _ in range(times):
        drawn = [each for each in events for _ in range(chance.choice((0, 1, 1, 1, 2)))]
        for _ in range(chance.randint(0, 3)):
            first, second = chance.randrange(len(drawn) or 1), chance.randrange(len(drawn) or 1)
            if drawn:
                drawn[first], drawn[second] = drawn[second], drawn[first]
        yield "".join(drawn)
