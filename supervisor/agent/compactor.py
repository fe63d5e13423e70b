"""The compactor: makes a conversation shorter before it has outgrown its model's window.

Rule: what is left out is decided from sizes alone, before the model is asked for a summary, and holds whatever comes of
that. The fact is recorded before any request is made of what it leaves.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import trio

from supervisor.agent.models.model import Message, Model, ModelRequest
from supervisor.agent.said_messages import results_in
from supervisor.agent.summary_request import LONGEST, summary_request
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import SuspendedTurn
from supervisor.errors import ModelError
from supervisor.journal.facts import Compacted, CompactionCause, SummaryFailure

_log: Final = logging.getLogger("strongroom.agent")

_RESERVE: Final = 20
"""The part of a window that is left free besides the reply, as a divisor: sizes are estimated."""
_REPLY: Final = 4
"""The part of it that a reply has at most, as a divisor."""
_HEAD: Final = 0.45
_TAIL: Final = 0.2
"""The parts of what a window holds that stand for the older messages, and that the newest ones take."""
_LEAST: Final = 1000
"""Bytes that each of them has at least."""
_LEAST_RESULT: Final = 200
_SHORTER: Final = 0.9
"""How long the conversation may be after it, at most, of what it was."""
_WORTH: Final = 2000
"""Bytes that are left out, at least, so that a summary is asked for."""
_UNMEASURED: Final = 3.0
"""Bytes of a token where no server has counted any, and of what came since one has."""
_DENSEST: Final = 1.0
_SPARSEST: Final = 4.0
_TRIES: Final = 6
"""Times that a request which a server finds too long is made shorter, to half each time."""
_PATIENCE_S: Final = 300.0
"""Seconds that a summary is waited for."""


class CompactionWish(NamedTuple):
    """What a person asks for."""

    by: str
    remark: str = ""


@dataclass
class Compactor:
    """Compacts one session's conversation."""

    session: str
    """Its id in the journal."""
    transcript: Transcript
    """Of the session's facts so far."""
    record: Callable[..., Awaitable[None]]
    """Makes facts durable, takes them into account and shows them."""
    summarize: Callable[[Model, ModelRequest, Compacted, int], Awaitable[Compacted]]
    """Asks a model for a summary of at most so many characters, within the budgets; returns the fact with it."""
    window: Callable[[str], int]
    """Says how many tokens a model holds; 0 where nobody knows."""

    def __post_init__(self) -> None:
        self.wish: CompactionWish | None = None
        """Of a person, while a turn runs: it is done before the next request."""
        self._tries = 0

    async def before(self, model: Model, request: ModelRequest) -> bool:
        """Compact the conversation where a request has come near the window, or a person asks; say whether it was."""
        self._tries = 0
        wish, self.wish = self.wish, None
        limit = self._limit(model, request)
        if wish is not None:
            return await self.compact(model, request, "asked", wish) is not None
        if not limit or self.tokens(request) <= limit:
            return False
        return await self.compact(model, request, "near") is not None

    async def after(self, model: Model, request: ModelRequest) -> bool:
        """Make a request shorter that a server has found too long; say whether that can be done, once more."""
        self._tries += 1
        return self._tries <= _TRIES and await self.compact(model, request, "full") is not None

    async def compact(
        self, model: Model, request: ModelRequest, because: CompactionCause, wish: CompactionWish | None = None
    ) -> Compacted | None:
        """Compact the conversation; return the fact, or None where that would not make it shorter.

        A model is asked for a summary once a request.

        Raises:
            JournalError: it cannot be recorded; everything stays as it was.
        """
        sizes = [len(msgspec.json.encode(message)) for message in request.messages]
        fact = self._planned(model, request, because, sizes)
        fact = msgspec.structs.replace(fact, by=wish.by, remark=wish.remark) if wish is not None else fact
        said, _, first = self.transcript.compacted(fact)
        size = _size(said.messages)
        if size >= sum(sizes) * (1.0 if because == "asked" else _SHORTER):
            return None
        fact = await self._summarized(model, request, fact, first, sum(sizes) - size)
        size = _size(self.transcript.compacted(fact)[0].messages)
        fixed = self._fixed(request)
        after = round(fact.before * (size + fixed) / (sum(sizes) + fixed))
        fact = msgspec.structs.replace(fact, after=after)
        await self.record(fact)
        return fact

    async def _summarized(
        self, model: Model, request: ModelRequest, fact: Compacted, first: int, left_out: int
    ) -> Compacted:
        """Return a compaction with a summary of the messages before `first`, or with why it has none."""
        if left_out < _WORTH or self._tries > 1:
            return msgspec.structs.replace(fact, failure="not_wanted")
        most = min(LONGEST, fact.size // 4)
        size = 2 * fact.size
        asked = summary_request(self.transcript.messages[:first], size, request.options, fact.remark, self.session)
        fact = msgspec.structs.replace(fact, model=model.name)
        failure: SummaryFailure = "timeout"
        with trio.move_on_after(_PATIENCE_S):
            try:
                return await self.summarize(model, asked, fact, most)
            except SuspendedTurn:
                failure = "budget"
            except ModelError as error:
                _log.info("no summary of session %s: %s", self.session, error)
                failure = "no_reply"
        return msgspec.structs.replace(fact, failure=failure)

    def _planned(
        self, model: Model, request: ModelRequest, because: CompactionCause, sizes: Sequence[int]
    ) -> Compacted:
        """Return the fact of a compaction, by what a window holds; half of it each time that a server has refused."""
        tokens = self.tokens(request)
        limit = self._limit(model, request) or tokens
        fixed = self._fixed(request)
        density = self._density(request, sizes) if because != "full" else _DENSEST + 1.0
        whole, most = (max(0.0, each * density - fixed) for each in (min(limit, tokens), limit))
        share = 0.5 ** max(0, self._tries - 1)
        head = (most if because == "asked" else whole) * _HEAD * share
        tail = max(_LEAST, round(whole * _TAIL * share))
        step = self._first_step(sizes, tail)
        results = len(results_in(request.messages[-1]))
        result = max(_LEAST_RESULT, tail // max(1, results))
        return Compacted(self.transcript.turn, step, max(_LEAST, round(head)), result, because, before=tokens)

    def _first_step(self, sizes: Sequence[int], tail: int) -> int:
        """Return the first step whose reply, with all that came after it, takes no more bytes than `tail`."""
        found, last, taken, at = self.transcript.step + 1, self.transcript.last_border(), 0, len(sizes)
        for step, index in reversed(self.transcript.compaction.borders):
            taken, at = taken + sum(sizes[index:at]), min(at, index)
            if taken > tail and index < last:
                break
            found = step if index <= last else found
        return found

    def tokens(self, request: ModelRequest) -> int:
        """Return how many tokens a request's input has: as its server counted those before, and estimated since."""
        measured = self.transcript.measured
        if measured is None:
            return round((_size(request.messages) + self._fixed(request)) / _UNMEASURED)
        return measured.tokens + round(_size(request.messages[measured.messages :]) / _UNMEASURED)

    def _density(self, request: ModelRequest, sizes: Sequence[int]) -> float:
        """Return the bytes of a token in this conversation."""
        measured = self.transcript.measured
        if measured is None or not measured.tokens:
            return _UNMEASURED
        counted = sum(sizes[: measured.messages]) + self._fixed(request)
        return min(_SPARSEST, max(_DENSEST, counted / measured.tokens))

    def _limit(self, model: Model, request: ModelRequest) -> int:
        """Return how many tokens a request's input may have; 0 where the window is not known."""
        window = self.window(model.name)
        return window - min(request.options.max_tokens, window // _REPLY) - window // _RESERVE

    @staticmethod
    def _fixed(request: ModelRequest) -> int:
        """Return the bytes of what every request begins with."""
        return len(msgspec.json.encode(request.tools)) + len(request.system.encode())


def _size(messages: Sequence[Message]) -> int:
    return sum(len(msgspec.json.encode(message)) for message in messages)
