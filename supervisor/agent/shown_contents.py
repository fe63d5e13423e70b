"""Images and documents of one request: read from the store, or text in their place.

Rule: a function of the transcript and of what the model sees, so that a request that is made again is the same. The
newest are shown. Where a request has no room for one more, old ones go until half of it is free: each time that costs
the provider's cache of all that comes after them. A content that is gone is said to be.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

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


class _Space(NamedTuple):
    """What contents take of a request."""

    encoded: int = 0
    images: int = 0
    pages: int = 0

    def plus(self, other: "_Space", sign: int = 1) -> "_Space":
        return _Space(*(mine + sign * its for mine, its in zip(self, other, strict=True)))

    def within(self, whole: "_Space") -> bool:
        return all(mine <= its for mine, its in zip(self, whole, strict=True))


_WHOLE: Final = _Space(ENCODED_AT_MOST, IMAGES_AT_MOST, PAGES_AT_MOST)
_HALF: Final = _Space(*(each // 2 for each in _WHOLE))


def _space_of(content: KeptContent) -> _Space:
    document = content.media_type == DOCUMENT
    return _Space(-(-content.size // 3) * 4, 0 if document else 1, content.pages if document else 0)


def _fits(content: KeptContent) -> bool:
    """Say whether a request has room for a content if it has no other."""
    return _space_of(content).within(_WHOLE)


def _old_ones(messages: Iterable[Sequence[KeptContent]]) -> int:
    """Return how many contents, from the first on, are shown no more once all messages were sent; each one fits."""
    shown: deque[_Space] = deque()
    taken, dropped = _Space(), 0
    for contents in messages:
        for content in contents:
            shown.append(_space_of(content))
            taken = taken.plus(shown[-1])
        full = not taken.within(_WHOLE)
        while not taken.within(_WHOLE) or (full and len(shown) > len(contents) and not taken.within(_HALF)):
            taken, dropped = taken.plus(shown.popleft(), -1), dropped + 1
    return dropped


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
    """The contents of one request, while they are gathered."""

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
        self._old = self._gone = 0

    def fill(self, request: ModelRequest, transcript: Transcript) -> ModelRequest:
        messages, naming = list(request.messages), sorted(transcript.with_contents)
        named = (list(self._visible(messages[index]["content"])) for index in naming)
        self._old = dropped = _old_ones(named)
        for index in naming:
            messages[index] = self._filled(messages[index])
        left = frozenset(each for each in naming if holds_contents(messages[each]["content"]))
        found = {"messages": messages, "media": self._media, "with_media": left, "left_out": dropped + self._gone}
        return msgspec.structs.replace(request, **found)

    def _visible(self, blocks: Iterable[Block]) -> Iterator[KeptContent]:
        """Yield the contents that the model could be shown, in their order."""
        for block in blocks:
            if isinstance(within := block.get("content"), list):
                yield from self._visible(within)
            elif block["type"] in self._sees and block["type"] in CONTENTS:
                content = self._known[block["source"]["digest"]]
                if _fits(content) and content.digest not in self._refused:
                    yield content

    def _filled(self, message: Message) -> Message:
        return {**message, "content": [self._shown(block) for block in message["content"]]}

    def _shown(self, block: Block) -> Block:
        """Return a block as the model may have it; the same where nothing is put in its place."""
        if isinstance(within := block.get("content"), list):
            return {**block, "content": [self._shown(each) for each in within]}
        if block["type"] not in CONTENTS:
            return block
        content = self._known[block["source"]["digest"]]
        why = _UNSEEN[block["type"]] if block["type"] not in self._sees else self._missing(content)
        return block if not why else {"type": "text", "text": in_place(content, why, self._text_of(content))}

    def _missing(self, content: KeptContent) -> str:
        """Return why the next content is not shown, a clause; "" where it is."""
        if content.digest in self._refused:
            return _REFUSED
        if not _fits(content):
            return f"it has more than {PAGES_AT_MOST} pages" if content.pages > PAGES_AT_MOST else _NO_ROOM
        if self._old:
            self._old -= 1
            return _NO_ROOM
        if content.digest not in self._media:
            try:
                encoded = None if self._store is None else self._store.encoded(content.digest)
            except KeptError:
                encoded = None
            if encoded is None:
                self._gone += 1
                return _GONE
            self._media[content.digest] = encoded
        return ""

    def _text_of(self, content: KeptContent) -> str:
        if content.text and self._store is not None:
            with suppress(KeptError):
                return self._store.read(content.text).decode("utf-8", "replace")
        return ""
