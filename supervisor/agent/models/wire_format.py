"""Wire formats of models' servers: how requests look, and how answers are read.

Rule: a format is pure but for `head`. It holds no socket and no state of a conversation; a reader lives for one answer,
and nothing that a server sends may surprise it: what contradicts the format is a ModelError "bad_response".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        """Return the events that `chunk` completes, wherever it was cut."""
        ...

    def end(self) -> list[Event]:
        """Return the events that only the end of the answer completes."""
        ...


@dataclass(frozen=True)
class WireFormat:
    """One format of requests and answers."""

    head: Callable[["httpx2.AsyncClient", Server, str, str], RequestHead]
    """Returns what requests begin with, for a server, a key and a model; may import what is slow, in its thread."""
    body: Callable[[ModelRequest, str, str], dict[str, Any]]
    """Returns the JSON of a request to a model of a provider; what it was given stays as it is.

    What a reply's server alone can read goes back to that provider and no other. A conversation that cannot be said in
    this format is a ModelError.
    """
    decoder: Callable[[], Decoder]
    """Returns a decoder for one answer."""
    reader: Callable[[Callable[[Progress], None]], ReplyReader]
    """Returns a reader for one answer, which shows what arrives."""
    adjustments: Sequence[Adjustment] = ()
    """What is tried, in this order, where a server refuses a request."""
    content_type: str = "text/event-stream"
    """How the media type of an answer begins."""
    answers: str = "a stream of events"
    """What an answer is, for a sentence."""
