"""Answers of models' servers, as a bad line, a bad proxy or a bad server makes them."""

import random
from typing import Final

_PIECES: Final = [
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b"\\",
        b"null",
        b"7",
        b"\xff",
        b"\xf0\x9f",
        b"\\ud83d",
        b"\n{",
        b"\r\n\r\n",
        b"data: ",
    ),
    *(b'"text"', b'"functionCall"', b'"parts"', b'"candidates"', b'"finishReason": "STOP"'),
    *(b'"content"', b'"message"', b'"tool_calls"', b'"thinking"', b'"done": true'),
]


def mangled(raw: bytes, dice: random.Random) -> bytes:
    """Return an answer with pieces lost, doubled, or put where they do not belong."""
    for _ in range(dice.randrange(1, 4)):
        at, to = sorted(dice.randrange(len(raw) + 1) for _ in range(2))
        to = min(to, at + dice.randrange(1, 40))
        raw = raw[:at] + dice.choice([b"", dice.choice(_PIECES), raw[at:to] * 2]) + raw[to:]
    return raw
