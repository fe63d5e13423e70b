"""Wire formats of models' servers: how requests look, and how answers are read.

Rule: a format is pure but for `head`. It holds no socket and no state of a conversation; a reader lives for one answer,
and nothing that a server sends may surprise it: what contradicts the format is a ModelError "bad_response".
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from supervisor.agent.models.adjustment import Adjustment
from supervisor.agent.models.event_stream import Event
from supervisor.agent.models.model import ModelRequest, Progress, Reply
from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.server import Server

if TYPE_CHECKING:
    import httpx2


class ReplyReader(Protocol):
    """Reads one answer as it arrives."""

    @property
    def started(self) -> bool:
        """The server has sent something of this format."""
        ...

    @property
    def complete(self) -> bool:
        """The server has said that this was all; nothing counts after it."""
        ...

    def feed(self, event: Event) -> None:
        """Take the next event.

        Raises:
            ModelError: the server reports an error, or what it sends is not of this format.
        """
        ...

    @property
    def stopped(self) -> bool:
        """The server has said why it stopped; all that may follow is what it cost, and that this was all.

        Where nothing follows, that is no fault.
        """
        ...

    def reply(self) -> Reply:
        """Return the complete reply; of its origin, as far as there is one, only format and items are known here."""
        ...


class Decoder(Protocol):
    """Cuts the bytes of one answer into events."""

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that `chunk` completes, wherever it was cut.

        Raises:
            ModelError: the answer is larger than any reply.
        """
        ...

    def end(self) -> list[Event]:
        """Return the events that only the end of the answer completes."""
        ...


class WireFormat(Protocol):
    """One format of requests and answers."""

    @property
    def adjustments(self) -> Sequence[Adjustment]:
        """What is tried, in this order, where a server refuses a request."""
        ...

    @property
    def content_type(self) -> str:
        """How the media type of an answer begins."""
        ...

    @property
    def answers(self) -> str:
        """What an answer is, for a sentence: "a stream of events"."""
        ...

    def head(self, http: "httpx2.AsyncClient", server: Server, api_key: str, model: str) -> RequestHead:
        """Return what requests begin with; may import what is slow, as it runs in a thread."""
        ...

    def body(self, request: ModelRequest, model: str, provider: str) -> dict[str, Any]:
        """Return the request's JSON; what it was given stays as it is.

        What a reply's server alone can read goes back to that `provider` and no other.

        Raises:
            ModelError: the conversation cannot be said in this format.
        """
        ...

    def decoder(self) -> Decoder:
        """Return a decoder for one answer."""
        ...

    def reader(self, show: Callable[[Progress], None]) -> ReplyReader:
        """Return a reader for one answer, which shows what arrives."""
        ...
