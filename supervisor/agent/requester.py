"""The requester: asks the model for the next reply of a conversation, within its budgets.

Rule: a request is made of the transcript alone, so that one which a crash cut off is made again as it was. Where a
budget counts, what a request may use is recorded before it is made.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import trio

from supervisor.agent.accepted_reply import accepted
from supervisor.agent.allowance import Allowance
from supervisor.agent.amount import NOTHING, cost_of, used_by
from supervisor.agent.compactor import CompactionWish, Compactor
from supervisor.agent.content_refusals import RefusalSearch
from supervisor.agent.fallbacks import Failure
from supervisor.agent.input_bound import MeasuredInput, most_input
from supervisor.agent.models.immediate import ImmediateModel
from supervisor.agent.models.made_messages import MadeMessages
from supervisor.agent.models.model import Model, ModelOptions, ModelRequest, Progress, Reply, Retrying
from supervisor.agent.models.retry import shortest_wait
from supervisor.agent.paid_request import PaidRequest
from supervisor.agent.shown_contents import filled
from supervisor.agent.shown_reply import ShownReply, file_of
from supervisor.agent.summary_request import with_summary
from supervisor.agent.transcript import Transcript
from supervisor.agent.turn import Event, SuspendedTurn
from supervisor.config.model_keys import Price
from supervisor.errors import ModelError
from supervisor.journal.facts import BudgetReserved, Compacted, ContentsRefused, ModelRetried, Replied, TurnSuspended
from supervisor.journal.journal_writer import JournalWriter
from supervisor.tools.router import Router

_FREE: Final = Price(input=0.0, output=0.0)
_TOO_LONG: Final = frozenset({"context_full", "request_too_large"})
_CUT_BY_WINDOW: Final = "model_context_window_exceeded"
_WAITED_FOR: Final = frozenset({"overloaded", "rate_limited"})
"""Kinds of failures that a batch waits for, whether or not the server says how long."""


@dataclass
class Requester:
    """Asks the model in one session."""

    session: str
    """Its id in the journal."""
    writer: JournalWriter
    """Where facts go before anything else."""
    transcript: Transcript
    """Of the session's facts so far."""
    show: Callable[[Event], None]
    """Is given what a reply brings as it comes in."""
    record: Callable[..., Awaitable[None]]
    """Makes facts durable, takes them into account and shows them."""
    record_at_once: Callable[..., None]
    """Does the same without letting anything else happen meanwhile."""
    allowance: Allowance
    """What the conversation may use."""
    options: Callable[[str], ModelOptions] = lambda _name: ModelOptions()
    """Gives what the next request to a model asks for of its reply."""
    sees: Callable[[str], frozenset[str]] = lambda _name: frozenset()
    """Says which blocks a model is shown as they are: "image", "document"."""
    window: Callable[[str], int] = lambda _name: 0
    """Says how many tokens a model holds; 0 where nobody knows."""
    began_in: str = ""
    """The session in which the conversation began."""
    made: MadeMessages = field(default_factory=MadeMessages)
    """What was made of the transcript's messages for the request before."""
    shown: ShownReply = field(init=False)
    """What has come in of a reply that is not recorded yet."""

    def __post_init__(self) -> None:
        self.compactor = Compactor(self.session, self.transcript, self.record, self._summarized, self.window)
        self.shown = ShownReply(file_of(self.writer.journal.path, self.session), self.transcript)

    async def reply(self, model: Model, router: Router, system: str) -> tuple[Reply, Replied]:
        """Return the model's next reply, as the transcript takes it, and the fact that is to be recorded.

        Where the window has no space for it, the conversation is compacted first. Where its server takes a request
        without some images or documents alone, that is recorded.

        Raises:
            SuspendedTurn: a budget holds no further request.
            ModelError: there was none, after every sensible retry.
            JournalError: something could not be recorded.
        """
        tools = await self._tool_definitions(router)
        request = self._request(model, tools, system)
        if await self.compactor.before(model, request):
            request = self._request(model, tools, system)
        search, began = RefusalSearch(), time.monotonic()
        while True:
            asked = await self._with_contents(request, model, router, search.left_out)
            try:
                answer = await self._answer(model, asked, began)
                if answer[0].stop_reason != _CUT_BY_WINDOW or not await self.compactor.after(model, request):
                    break
                request = self._request(model, tools, system)
            except ModelError as error:
                await self.record(*self.shown.cut())
                if error.kind in _TOO_LONG and await self.compactor.after(model, request):
                    request = self._request(model, tools, system)
                elif not search.goes_on(error, asked):
                    raise self._suspended(error) from error
        if search.left_out:
            refused = tuple(self.transcript.contents[each] for each in sorted(search.left_out))
            await self.record(ContentsRefused(self.transcript.turn, model.name, refused, str(search.first)))
        return answer

    async def compact(self, model: Model, router: Router, system: str, wish: CompactionWish) -> Compacted | None:
        """Compact the conversation as a person wishes; return the fact, or None where nothing can be left out."""
        if not self.transcript.messages:
            return None
        tools = router.availability.definitions(self.transcript.unavailable)
        return await self.compactor.compact(model, self._request(model, tools, system), "asked", wish)

    def _request(self, model: Model, tools: Sequence[dict[str, Any]], system: str) -> ModelRequest:
        history = self.transcript
        return ModelRequest(
            system,
            tools,
            history.messages,
            history.step,
            options=self.options(model.name),
            origins=history.origins,
            session=self.began_in,
            made=self.made,
        )

    async def _with_contents(
        self, request: ModelRequest, model: Model, router: Router, left_out: frozenset[str]
    ) -> ModelRequest:
        """Return a request with the images and documents that a model is shown, but for some."""
        if not self.transcript.with_contents:
            return request
        refused = self.transcript.refused_contents.get(model.name, frozenset()) | left_out
        known = self.transcript, router.intake.store, self.sees(model.name), refused
        return await trio.to_thread.run_sync(filled, request, *known)

    async def _answer(self, model: Model, request: ModelRequest, began: float) -> tuple[Reply, Replied]:
        """Make a request, within the budgets; raises as `reply`."""
        async with self._paid(model, request, self.transcript.measured) as (paid, held):
            reply = accepted(await model.reply(held, lambda event: self._progress(event, paid)), self.transcript.ids)
            replied = self._replied(held, reply, self._price(model), began)
            self._settle(paid, replied)
        return reply, replied

    async def _summarized(self, model: Model, request: ModelRequest, fact: Compacted, most: int) -> Compacted:
        """Return a compaction with a model's summary; raises as `reply`, and records nothing but what is reserved."""
        began = time.monotonic()
        async with self._paid(model, request, None) as (paid, held):
            reply = await model.reply(held, lambda event: _reserve_again(event, paid))
            price = self._price(model)
            cost = cost_of(reply.usage, price) if price is not None else 0
            fact = with_summary(fact, reply, most, cost, round((time.monotonic() - began) * 1000))
            self._settle(paid, fact)
        return fact

    @asynccontextmanager
    async def _paid(
        self, model: Model, request: ModelRequest, measured: MeasuredInput | None
    ) -> AsyncIterator[tuple[PaidRequest | None, ModelRequest]]:
        """Reserve what a request may use where a budget counts; it counts in full unless the block settles it."""
        if not self.allowance.scopes():
            if self.allowance.spending.reserved != NOTHING:  # for one whose end nobody saw: it is not this one's
                await self.record(BudgetReserved(self.transcript.turn, 0, 0))
            yield None, request
            return
        paid, request = await self._reserved(model, request, measured)
        try:
            yield paid, request
        except ModelError as error:
            if not error.billed:
                paid.give_back()
            raise
        finally:
            paid.close()

    def _settle(self, paid: PaidRequest | None, fact: Replied | Compacted) -> None:
        if paid is None:
            self.allowance.ledger.add(used_by(fact), self.allowance.run)
        else:
            paid.settle(used_by(fact, paid.amount))

    def _suspended(self, error: ModelError) -> Exception:
        """Return what a failure comes to: where a limit is reached, a wait for as long as the server says."""
        return error if error.retry_after is None else self._waits(error, error.retry_after)

    def last(self, failure: Failure) -> Failure:
        """Return what a turn comes to after it: in a batch, limits of unknown length are waited for as well."""
        waits = isinstance(failure, ModelError) and failure.kind in _WAITED_FOR and self.allowance.run
        return self._waits(failure, 0.0) if waits else failure

    def _waits(self, error: Exception, seconds: float) -> SuspendedTurn:
        """Return a wait of at least so long; longer ones each time, until there is no patience left."""
        now, waiting = self.allowance.ledger.clock(), self.allowance.ledger.waiting
        since = self.transcript.detour.since or now
        until = now + max(seconds, shortest_wait(now - since))
        most = waiting.batch_longest_s if self.allowance.run else waiting.longest_s
        why = f"{error} /model asks another one, /go asks again now."
        if until - since > most:
            until = 0.0
        return SuspendedTurn(TurnSuspended(self.transcript.turn, "limit", why, until, since=since))

    async def _reserved(
        self, model: Model, request: ModelRequest, measured: MeasuredInput | None
    ) -> tuple[PaidRequest, ModelRequest]:
        """Reserve what a request may use, and record it; return it with a reply that is no longer than that."""
        tokens, price = most_input(request, measured, self.transcript.contents), self._price(model)
        turn, most = self.transcript.turn, request.options.max_tokens
        while True:
            reservation, output = await self.allowance.reserve(turn, model.name, price, tokens, most)
            paid = PaidRequest(self.allowance, turn, reservation, self.record_at_once)
            with paid.counted_in_full():
                await self.record(paid.reserved)
            if self.allowance.stands():
                shorter = msgspec.structs.replace(request.options, max_tokens=output)
                return paid, msgspec.structs.replace(request, options=shorter, counted=True)
            paid.give_back()

    def _progress(self, event: Progress, paid: PaidRequest | None = None) -> None:
        """Show what comes in; a request that is made again is recorded, and reserved again if it was billed.

        Raises:
            SuspendedTurn: a budget does not hold another attempt.
        """
        if isinstance(event, Retrying):
            why = event.attempt, event.kind, event.message, event.delay
            retried = ModelRetried(self.transcript.turn, *why, *self.shown.texts)
            self.writer.journal.append(self.session, retried)
            self.shown.forget()
            self.transcript.apply(retried)
        else:
            self.shown.add(event)
        self.show(event)
        if isinstance(event, Retrying) and event.billed and paid is not None:
            paid.begin_again()

    def fits(self, model: Model, tokens: int) -> bool:
        """Say whether the budgets hold a request with so many tokens of input."""
        return self.allowance.holds(tokens, self._price(model))

    def _price(self, model: Model) -> Price | None:
        """Return what a model's tokens cost, in the currency of the budgets; None where that is not known."""
        return self.allowance.ledger.price(model.name) or (_FREE if isinstance(model, ImmediateModel) else None)

    def _replied(self, request: ModelRequest, reply: Reply, price: Price | None, began: float) -> Replied:
        cost = cost_of(reply.usage, price) if price is not None else 0
        ms = round((time.monotonic() - began) * 1000)
        number, step = self.transcript.turn, self.transcript.step
        said = number, step, reply.content, reply.stop_reason, reply.usage, reply.origin
        return Replied(*said, cost=cost, ms=ms, left_out=request.left_out)

    async def _tool_definitions(self, router: Router) -> Sequence[dict[str, Any]]:
        """Return the tools for the next request, having told of those that are gone or back since the one before.

        They are the same as before unless something was told: a changed list costs the cache all that comes after it.
        """
        if self.transcript.messages[-1]["role"] == "user":  # else a reply goes on, and nothing may be said before it
            await self.record(*router.availability.announcements(self.transcript.turn, self.transcript.unavailable))
        return router.availability.definitions(self.transcript.unavailable)


def _reserve_again(event: Progress, paid: PaidRequest | None) -> None:
    """Reserve a summary's request again that is made again, and was billed; nobody is shown how it comes in."""
    if isinstance(event, Retrying) and event.billed and paid is not None:
        paid.begin_again()
