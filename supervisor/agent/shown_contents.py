"""Images and documents of one request: read from the store, or text in their place.

Rule: a function of the transcript and of what the model sees, so that a request that is made again is the same. The
newest are shown, as many as a request has room for; a content that is gone is said to be.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from supervisor.agent.blocks import holds_contents
from supervisor.agent.models.model import CONTENTS, Block, Message, ModelRequest
from supervisor.agent.transcript import Transcript
from supervisor.errors import KeptError
from supervisor.journal.contents import ContentStore
from supervisor.journal.kept_content import KeptContent
from supervisor.tools.content_words import in_place
from workers.wire.media_types import DOCUMENT

ENCODED_AT_MOST: Final = 18_000_000
"""Characters of base64 in one request: servers take 20 MB (Gemini) to 32 MB (Anthropic) of everything."""
IMAGES_AT_MOST: Final = 100
PAGES_AT_MOST: Final = 100
"""Pages of all documents together."""

_UNSEEN: Final[Mapping[str, str]] = {
    "image": "this model cannot see images",
    "document": "this model takes no documents",
}
_NO_ROOM: Final = "a request has room for the newest ones alone"
_GONE: Final = "it is not kept any more"
_REFUSED: Final = "the server of this model refuses it"


def filled(
    request: ModelRequest,
    transcript: Transcript,
    store: ContentStore | None,
    sees: frozenset[str],
    refused: frozenset[str] = frozenset(),
) -> ModelRequest:
    """Return a request with the images and documents that its messages name; it waits for the disk.

    Args:
        request: as the transcript has it.
        transcript: of the conversation; it does not change meanwhile.
        store: where they are kept; None where none are.
        sees: the blocks that the model is shown as they are.
        refused: the digests of what its server does not take.
    """
    return _Filling(transcript.contents, store, sees, refused).fill(request, transcript)


class _Filling:
    """The contents of one request, while they are gathered from the newest on."""

    def __init__(
        self,
        known: Mapping[str, KeptContent],
        store: ContentStore | None,
        sees: frozenset[str],
        refused: frozenset[str],
    ) -> None:
        self._known = known
        self._store = store
        self._sees = sees
        self._refused = refused
        self._media: dict[str, str] = {}
        self._room, self._images, self._pages = ENCODED_AT_MOST, IMAGES_AT_MOST, PAGES_AT_MOST

    def fill(self, request: ModelRequest, transcript: Transcript) -> ModelRequest:
        messages = list(request.messages)
        for index in sorted(transcript.with_contents, reverse=True):
            messages[index] = self._filled(messages[index])
        left = frozenset(each for each in transcript.with_contents if holds_contents(messages[each]["content"]))
        return msgspec.structs.replace(request, messages=messages, media=self._media, with_media=left)

    def _filled(self, message: Message) -> Message:
        blocks = [self._shown(block) for block in reversed(message["content"])]
        return {**message, "content": blocks[::-1]}

    def _shown(self, block: Block) -> Block:
        """Return a block as the model may have it; the same where nothing is put in its place."""
        if isinstance(within := block.get("content"), list):
            return {**block, "content": [self._shown(each) for each in reversed(within)][::-1]}
        if block["type"] not in CONTENTS:
            return block
        content = self._known[block["source"]["digest"]]
        why = _UNSEEN[block["type"]] if block["type"] not in self._sees else self._missing(content)
        return block if not why else {"type": "text", "text": in_place(content, why, self._text_of(content))}

    def _missing(self, content: KeptContent) -> str:
        """Return why a content is not shown, a clause; "" where it is, and has its room."""
        if content.digest in self._refused:
            return _REFUSED
        size = -(-content.size // 3) * 4
        images, pages = (0, content.pages) if content.media_type == DOCUMENT else (1, 0)
        if size > self._room or images > self._images or pages > self._pages:
            return _NO_ROOM if content.pages <= PAGES_AT_MOST else f"it has more than {PAGES_AT_MOST} pages"
        if content.digest not in self._media:
            try:
                if self._store is None:
                    return _GONE
                self._media[content.digest] = self._store.encoded(content.digest)
            except KeptError:
                return _GONE
        self._room, self._images, self._pages = self._room - size, self._images - images, self._pages - pages
        return ""

    def _text_of(self, content: KeptContent) -> str:
        if content.text and self._store is not None:
            with suppress(KeptError):
                return self._store.read(content.text).decode("utf-8", "replace")
        return ""
