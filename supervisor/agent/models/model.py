"""A model: it answers a request with one reply, streaming as it goes.

Rule: a model is stateless between requests. Everything it needs is in the request, so a conversation that is
opened again after a crash continues as if nothing had happened. Blocks and messages are plain dicts in the shape
of Anthropic's Messages API (https://docs.anthropic.com/en/api/messages): nothing re-validates history. A reply of
another API is kept in this shape, without its thinking, and as its server sent it, in its `origin`. An image or a
document is named by the digest of its content: {"type": "image" | "document", "source": {"type": "content", "digest":
..., "media_type": ...}}, which a format replaces by what `ModelRequest.media` has for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from supervisor.agent.models.made_messages import MadeMessages
from supervisor.config.model_keys import Effort
from supervisor.journal.facts import ReplyOrigin

Block = dict[str, Any]
"""One content block: {"type": "text" | "tool_use" | "tool_result" | "thinking" | ..., ...}."""

NO_STEP: Final = -1
"""The step of a request for a summary."""

CONTENTS: Final = frozenset({"image", "document"})
"""Blocks that name a content by its digest."""

Message = dict[str, Any]
"""{"role": "user" | "assistant", "content": [Block, ...]}."""

Usage = dict[str, int]
"""Token counts by the API's names: input_tokens, output_tokens, cache_read_input_tokens, ..."""


class ModelOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What can be chosen of a reply, as far as the model has it."""

    max_tokens: int = 8192
    """The longest reply, in tokens, thinking included."""
    effort: Effort = ""
    """How much it thinks before it answers; "" leaves it to the provider, "none" is not at all."""
    temperature: float | None = None
    """None leaves it to the provider."""


class ModelRequest(msgspec.Struct, frozen=True):
    """One step's question."""

    system: str
    tools: Sequence[dict[str, Any]]
    """As the Messages API has them: name, description, input_schema."""
    messages: Sequence[Message]
    step: int
    """Counts the requests of this conversation that have ended, from 0; `NO_STEP` where it is none of a turn's."""
    options: ModelOptions = ModelOptions()
    origins: Mapping[int, ReplyOrigin] = {}
    """Who wrote a message that is a reply, by its index; of one that was made of several replies nothing is known."""
    media: Mapping[str, str] = {}
    """Images and documents that the messages name by their digest (SHA-256, hexadecimal), in base64."""
    with_media: frozenset[int] = frozenset()
    """The indices of the messages that hold any, in their content or in that of a tool's result."""
    left_out: int = 0
    """How many of them it has words for, because there is no room any more or they are not kept."""
    counted: bool = False
    """Whether a budget counts its reply, which is then never longer than it was asked for."""
    session: str = ""
    """That in which its conversation began, for servers that keep by it what requests begin with."""
    made: MadeMessages | None = None
    """What was made of the conversation's messages for the request before."""


class ToolUse(msgspec.Struct, frozen=True):
    """A tool call as the model wrote it. `arguments` is its raw JSON text, complete or not."""

    id: str
    name: str
    arguments: str


class Reply(msgspec.Struct, frozen=True):
    """One complete reply.

    `content` holds the blocks to keep; a tool_use block in it has its input parsed ({} when it does not parse)
    and stands in the same order as in `calls`, which has the raw text. With stop_reason "max_tokens" the last
    call may be cut.
    """

    content: list[Block]
    stop_reason: str
    usage: Usage
    calls: list[ToolUse] = []
    origin: ReplyOrigin | None = None
    """Who wrote it, and in what form; None where nothing but `content` is to be kept."""

    @classmethod
    def at_once(
        cls, text: str, calls: Sequence[tuple[ToolUse, dict[str, Any]]], usage: Usage, stop_reason: str = ""
    ) -> "Reply":
        """Return a reply of a text, unless it is empty, and of calls, each with its arguments as far as they parse."""
        content: list[Block] = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": use.id, "name": use.name, "input": given} for use, given in calls]
        return cls(content, stop_reason or ("tool_use" if calls else "end_turn"), usage, [use for use, _ in calls])

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.content if block["type"] == "text")


NO_ANSWER: Final = "(no answer)"
"""Stands for a reply that has nothing to show: no API takes an empty one back."""


class TextDelta(msgspec.Struct, frozen=True):
    """A piece of text as it arrives; a retry makes everything since the request void."""

    text: str


class ThoughtDelta(msgspec.Struct, frozen=True):
    """A piece of the model's thinking as it arrives."""

    text: str


class Retrying(msgspec.Struct, frozen=True):
    """The request failed and is made again. `delay` is in seconds, `attempt` counts from 1."""

    attempt: int
    kind: str
    message: str
    delay: float
    billed: bool = False
    """Whether the server may bill what it did of the one that failed."""


Progress = TextDelta | ThoughtDelta | Retrying


class Model(Protocol):
    """A source of replies."""

    @property
    def name(self) -> str:
        """What the person chose, as in `--model`."""
        ...

    async def warm(self) -> None:
        """Do now what the first reply would wait for, such as a slow import.

        Raises:
            ModelError: it cannot be done; `reply` would say the same.
        """
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        """Return the reply to `request`, calling `show` as it arrives.

        Raises:
            ModelError: there was no reply, after every sensible retry.
        """
        ...


def message_text(content: Iterable[Block]) -> str:
    """Return the text blocks of a message, joined."""
    return "".join(block["text"] for block in content if block["type"] == "text")
