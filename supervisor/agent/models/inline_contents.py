"""Images and documents as the Messages API takes them, in base64 where the conversation names their digests. Pure."""

from collections.abc import Mapping, Sequence

from supervisor.agent.models.model import CONTENTS, Block, Message, ModelRequest


def inlined(request: ModelRequest, messages: Sequence[Message]) -> Sequence[Message]:
    """Return a request's `messages` with the contents that it brings; only messages that name any are copied."""
    if not request.with_media:
        return messages
    copied = list(messages)
    for index in request.with_media:
        copied[index] = {**copied[index], "content": _inlined(copied[index]["content"], request.media)}
    return copied


def _inlined(blocks: Sequence[Block], media: Mapping[str, str]) -> list[Block]:
    found: list[Block] = []
    for block in blocks:
        if block["type"] in CONTENTS:
            source = block["source"]
            data = {"type": "base64", "media_type": source["media_type"], "data": media[source["digest"]]}
            found.append({**block, "source": data})
        elif isinstance(within := block.get("content"), list):
            found.append({**block, "content": _inlined(within, media)})
        else:
            found.append(block)
    return found
