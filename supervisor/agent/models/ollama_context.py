"""Contexts of local models: the tokens that a conversation needs, estimated before and counted after.

Rule: pure. The server cuts what does not fit, its tools first, and says nothing; so the estimate is above what
tokenizers make of a text, what the server has counted corrects it, and what would be cut is refused before it is sent.

Source: https://github.com/ollama/ollama/blob/main/server/prompt.go
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from supervisor.errors import ModelError

_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz "
_ASCII: Final = bytes(range(128))


class _TokenDensity(NamedTuple):
    """Tokens that tokenizers make of a byte; of what is neither, one."""

    letter: float
    """Small letters and spaces."""
    foreign: float
    """Bytes of a text that is not ASCII."""


_USUAL: Final = _TokenDensity(1 / 3.5, 0.75)
"""Rather many, for English and code: two tokens for a Chinese sign, three for an emoji."""
_MOST: Final = _TokenDensity(1 / 2, 1.0)
"""As many as there can be: Finnish with the vocabulary of an English model."""


class _ByteCounts(NamedTuple):
    """Bytes of a text by kind; each of the others is a token."""

    letters: int
    """Small ones, and spaces."""
    spaces: int
    foreign: int
    others: int

    def tokens(self, density: _TokenDensity) -> float:
        """Return about how many tokens it has."""
        return self.letters * density.letter + self.foreign * density.foreign + self.others


_MESSAGE: Final = 8
_IMAGE: Final = 1024
"""Tokens that a message takes besides its text, and an image."""
_LEAST_REPLY: Final = 512
"""Tokens that must be left for a reply."""
_FIRST: Final = 8192
"""The smallest context that is asked for; others are twice that, and so on: each new size loads the model anew."""
_CHANGED: Final = 1 / 16
"""The share by which what was counted may have grown since: another tool, another mode."""
_LONGEST_TOKENS: Final = 8
"""Small letters that tokens have at most, on the average of a text."""
UNKNOWN_WINDOW: Final = 8192
"""Tokens that a model is taken to hold whose server does not say."""


class Counted(NamedTuple):
    """What the server has counted of an earlier request of the conversation."""

    tokens: int
    messages: int
    """How many of the wire's messages it had."""
    context: int = 0
    """That it had asked for; 0 where that is not known."""


class ContextPlan(NamedTuple):
    """The context of one request, in tokens."""

    context: int
    """To ask for: `num_ctx`."""
    reply: int
    """That the reply may have: `num_predict`."""
    least: int
    """That the server must have read, if it has cut nothing."""


def plan(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    counted: Counted | None,
    *,
    wanted: int,
    window: int,
    floor: int = 0,
) -> ContextPlan:
    """Return the context that a request needs.

    Args:
        messages: as the server gets them.
        tools: the same.
        counted: the last count that is known of this conversation.
        wanted: tokens that the reply is to have.
        window: tokens that the model holds, or may have.
        floor: the context that it has now; a smaller one than that, or than what was counted had, would load it anew.

    Raises:
        ModelError: it does not fit ("context_full").
    """
    first = 1 if messages and messages[0]["role"] == "system" else 0
    sent = max(counted.messages, first) if counted else first
    ours = _counts(messages[:first]).tokens(_USUAL) + _counts(tools).tokens(_USUAL)
    earlier, later = _counts(messages[first:sent]), _counts(messages[sent:])
    usual, most = (round(ours + earlier.tokens(each) + later.tokens(each)) for each in (_USUAL, _MOST))
    need, tight = usual, most
    if counted is not None:
        before = ours + earlier.tokens(_USUAL)
        density = max(1.0, counted.tokens / before)
        need = round(usual * density)
        known = round(counted.tokens + before * _CHANGED + later.tokens(_MOST) * density)
        tight = min(most, known) if density == 1.0 else known  # of what thinking was counted is no longer sent
    if tight + _LEAST_REPLY > window:
        raise ModelError(
            "context_full",
            f"the conversation has about {tight} tokens and the model's context {window}, which the server would fill "
            "by leaving out its beginning. It was not sent.",
            billed=False,
        )
    had = counted.context if counted else 0
    context = min(max(_step(max(need + wanted, tight + _LEAST_REPLY)), floor, had), window)
    words = sum(each.letters - each.spaces for each in (earlier, later))
    return ContextPlan(context, min(wanted, max(context - tight, _LEAST_REPLY)), words // _LONGEST_TOKENS)


def _counts(values: Sequence[Mapping[str, Any]]) -> _ByteCounts:
    """Return what messages or tools consist of."""
    images = sum(len(value["images"]) for value in values if "images" in value)
    told = [{key: each for key, each in value.items() if key != "images"} for value in values] if images else values
    text = msgspec.json.encode(told)
    others = text.translate(None, _LETTERS)
    foreign = len(others.translate(None, _ASCII))
    besides = _MESSAGE * len(values) + _IMAGE * images
    return _ByteCounts(len(text) - len(others), text.count(b" "), foreign, len(others) - foreign + besides)


def _step(tokens: int) -> int:
    """Return the context to ask for where so many tokens are needed."""
    size = _FIRST
    while size < tokens:
        size *= 2
    return size


def check_uncut(read: int, planned: ContextPlan) -> None:
    """Look whether the server has read all that it was sent; `read` is what it has counted, 0 where it has not.

    Raises:
        ModelError: it has left something out ("context_full").
    """
    if read and (read < planned.least or read >= planned.context):
        what = f"of at least {planned.least}" if read < planned.least else f"and has no room for more than {read}"
        raise ModelError(
            "context_full", f"the server has read {read} tokens {what}: it has left out a part of the conversation."
        )
