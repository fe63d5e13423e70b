"""The way of an image or a document into a session: decoded by a worker, kept beside the journal, named by a fact.

    bytes that a file tool or a person hands over -> a media worker -> the content store -> KeptContent

Rule: nothing here decodes, and nothing here believes a name. What is kept is what the worker made of an image, and a
document as it was; that is durable when a `KeptContent` is returned, so that the fact which names it may be recorded.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
import trio
from msgspec import Meta

from supervisor.errors import KeptError, StrongroomError, WorkerDied, WorkerError, WorkerUnavailable
from supervisor.journal.contents import ContentStore
from supervisor.journal.kept_content import KeptContent
from supervisor.pool.pools import Pools
from supervisor.tools.catalog import unoffered
from supervisor.tools.named_files import answer_of
from workers.wire import messages
from workers.wire.frames import FrameTooLarge
from workers.wire.media_types import DOCUMENT, MEDIA_LIMIT, NAMES, type_of
from workers.wire.messages import ErrorKind

_TOOL: Final = "convert_media"
_NAME: Final = 200
"""Characters of a name that are kept."""
_TEXT: Final = 2**19
"""Bytes of a document's text, at most."""
_UNREADABLE: Final = "The media worker's answer cannot be read. Try again."
_WHERE_TO_LOOK: Final = "`strongroom doctor` says what is wrong."


class ContentRefused(StrongroomError):
    """It cannot be shown to a model; `kind` is a call's."""

    kind: ErrorKind

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Attached(NamedTuple):
    """An image or a document that a person sends along."""

    data: bytes
    media_type: str
    """What it claims to be."""
    name: str


_Measure = Annotated[int, Meta(ge=0, le=2**31)]


class _Converted(msgspec.Struct, frozen=True):
    """What a media worker says of a content; it has read what a stranger made, and is not believed more than that."""

    media_type: Literal["image/png", "image/jpeg", "application/pdf"]
    width: _Measure = 0
    height: _Measure = 0
    pages: _Measure = 0
    note: Annotated[str, Meta(max_length=200)] = ""


class ContentIntake:
    """Takes contents into one session.

    Args:
        pools: the workers of its root, which a media worker does not see.
        store: where contents are kept; None where none can be.
        session: its id.
    """

    def __init__(self, pools: Pools, store: ContentStore | None, session: str) -> None:
        self._pools = pools
        self.store = store
        self._session = session

    def in_use(self) -> AbstractContextManager[None]:
        """Keep contents at hand meanwhile."""
        return nullcontext() if self.store is None else self.store.in_use()

    async def take_all(self, attached: Sequence[Attached | str]) -> tuple[KeptContent, ...]:
        """Return what came with a person's line, without paths at which nothing is; raises as `take`."""
        found = [await self.linked(each) if isinstance(each, str) else each for each in attached]
        return tuple([await self.take(*each) for each in found if each is not None])

    async def take(self, data: bytes, claimed: str, name: str) -> KeptContent:
        """Return an image or a document as a fact may name it.

        Args:
            data: of the file.
            claimed: its media type, by whoever hands it over.
            name: the file's.

        Raises:
            ContentRefused: it is not what it claims, damaged, too large, or cannot be decoded or kept now.
        """
        if claimed not in NAMES:
            raise ContentRefused("not_text", f"{claimed[:80]!r} is no type that models are shown.")
        if len(data) > MEDIA_LIMIT:
            raise ContentRefused("too_large", f"It has {len(data)} bytes; at most {MEDIA_LIMIT} can be looked at.")
        if self.store is None:
            raise ContentRefused("worker_unavailable", "Images and documents cannot be kept here.")
        answer = await self._converted(data, claimed)
        try:
            told = msgspec.json.decode(answer.content, type=_Converted)
        except msgspec.DecodeError as error:
            raise ContentRefused("internal", _UNREADABLE) from error
        document = claimed == DOCUMENT
        made = claimed if document else type_of(answer.data)
        if told.media_type != made or (made == DOCUMENT) != document:
            raise ContentRefused("internal", _UNREADABLE)
        kept, text = (data, answer.data[:_TEXT]) if document else (answer.data, b"")
        try:
            digest, text_digest = await trio.to_thread.run_sync(self._keep, self.store, kept, text)
        except KeptError as error:
            raise ContentRefused(error.kind, str(error)) from error
        measures = (told.width, told.height, told.pages, told.note)
        return KeptContent(digest, told.media_type, len(kept), name[:_NAME], *measures, text=text_digest)

    def _keep(self, store: ContentStore, content: bytes, text: bytes) -> tuple[str, str]:
        """Keep a content and its text; return their digests, "" where there is no text. What follows has it at hand."""
        digest = store.put(self._session, content)
        store.encoded(digest)
        return digest, store.put(self._session, text) if text else ""

    async def linked(self, path: str) -> Attached | None:
        """Return an image or a document of the root that a person has named; None where it cannot be read there.

        Args:
            path: relative to the root; its name claims that it is one.
        """
        try:
            answer = await answer_of(self._pools, path)
        except (WorkerError, FrameTooLarge):
            return None
        if isinstance(answer, messages.Failed) or not answer.data:
            return None
        return Attached(answer.data, answer.content, path)

    async def _converted(self, data: bytes, claimed: str) -> messages.Done:
        """Return what a media worker makes of it; raises as `take`."""
        arguments = msgspec.json.encode({"media_type": claimed})
        what = f"This {NAMES[claimed]}"
        try:
            pool = self._pools.pool(unoffered(_TOOL).category)
            async with pool.turns:  # else an image that waits for others would be said to take too long
                answer = await pool.call(_TOOL, arguments, effect=False, content=data)
        except WorkerDied as death:
            if death.ordered == "timeout":
                raise ContentRefused("timeout", f"{what} takes too long to decode. Use a simpler one.") from death
            if death.ordered == "resource_limit":
                raise ContentRefused("resource_limit", f"{what} takes too much memory to decode.") from death
            raise ContentRefused("worker_crashed", f"{what} crashed the worker that decodes it.") from death
        except WorkerUnavailable as error:
            raise ContentRefused("worker_unavailable", f"{what} cannot be decoded: {error} {_WHERE_TO_LOOK}") from error
        if isinstance(answer, messages.Failed):
            raise ContentRefused(answer.kind, answer.message)
        return answer
