"""The messages of a conversation, as a model is sent them: said one after the other, or the first of them in short.

Rule: roles alternate, and nothing is changed in place: a message is the same object until something is added to it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from supervisor.agent.blocks import holds_contents
from supervisor.agent.models.model import Block, Message
from supervisor.journal.kept_content import KeptContent

if TYPE_CHECKING:
    from supervisor.journal.facts import ReplyOrigin

_LOST: Final[Block] = {"type": "text", "text": "(What was said here cannot be read any more.)"}


class SaidMessages:
    """Messages, who wrote them, and which of them name images or documents."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.origins: dict[int, ReplyOrigin] = {}
        """Who wrote a message that is one reply, by its index."""
        self.with_contents: set[int] = set()
        """The indices of messages that name images or documents."""
        self.contents: dict[str, KeptContent] = {}
        """Those, by their digests."""

    def name(self, contents: Iterable[KeptContent]) -> None:
        """Take note of images and documents that messages name from here on."""
        self.contents |= {each.digest: each for each in contents}

    def say(self, role: str, content: list[Block]) -> None:
        """Add blocks to the last message, or begin another one where that is somebody else's."""
        if not self.messages and role == "assistant":
            self.say("user", [_LOST])
        if self.messages and self.messages[-1]["role"] == role:
            last = self.messages[-1]
            self.origins.pop(len(self.messages) - 1, None)  # what its server sent is not all of it any more
            self.messages[-1] = {"role": role, "content": [*last["content"], *content]}
        else:
            self.messages.append({"role": role, "content": content})
        if self.contents and holds_contents(content):
            self.with_contents.add(len(self.messages) - 1)

    def last_border(self) -> int:
        """Return the index that the messages which stay must begin with at last: a reply, and what its calls gave."""
        if not self.messages:
            return 0
        last, reply = self.messages[-1], len(self.messages) - 1
        if last["role"] == "user":
            has_results = any(block["type"] == "tool_result" for block in last["content"])
            reply = reply - 1 if has_results else len(self.messages)
        return reply

    def shortened(self, first: int, head: list[Block], most: int) -> "SaidMessages":
        """Return the messages from `first` on behind a head, with no more bytes of each result than `most`."""
        found = SaidMessages()
        found.contents = self.contents
        found.say("user", head)
        for index in range(first, len(self.messages)):
            message = self.messages[index]
            found.say(message["role"], [_cut(block, most) for block in message["content"]])
            if index in self.origins:
                found.origins[len(found.messages) - 1] = self.origins[index]
        return found

    def take(self, other: "SaidMessages") -> None:
        """Have the messages of another from here on."""
        self.messages, self.origins, self.with_contents = other.messages, other.origins, other.with_contents


def _cut(block: Block, most: int) -> Block:
    """Return a block with the two ends of its result, where that is too long."""
    content = block.get("content")
    if block["type"] != "tool_result" or content is None:
        return block
    if isinstance(content, str):
        return block if len(content.encode()) <= most else {**block, "content": _ends(block, content, most)}
    parts = [
        part
        if part["type"] != "text" or len(part["text"].encode()) <= most
        else {**part, "text": _ends(block, part["text"], most)}
        for part in content
    ]
    return {**block, "content": parts}


def _ends(block: Block, text: str, most: int) -> str:
    data = text.encode()
    half = most // 2
    ends = [piece.decode("utf-8", "ignore") for piece in (data[:half], data[len(data) - half :])]
    left = len(data) - 2 * half
    return f"\n[{left} bytes are left out here; recall call {block['tool_use_id']}]\n".join(ends)


def results_in(message: Message) -> Sequence[Block]:
    """Return the results of tools in a message."""
    return [block for block in message["content"] if block["type"] == "tool_result"]
