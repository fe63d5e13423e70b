"""Withdraws the tools of failed categories from the model's catalog, and restores them; ends unanswered calls.

Rule: the list changes with a `ToolsChanged` and never without one, so that a conversation which is loaded again offers
the same. Failed means that no call can be made: a category with one worker left, or one about to start, is offered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import trio

from supervisor.display.escape import one_line
from supervisor.errors import WorkerDied, WorkerError
from supervisor.journal.facts import CallEnded, CallStarted, ToolsChanged
from supervisor.pool.pools import Pools
from supervisor.pool.restart import CategoryFailure
from supervisor.tools import outcomes
from supervisor.tools.catalog import Offer
from workers.wire.frames import FRAME_LIMIT, FrameTooLarge

_LONGEST: Final = 500
"""Characters of a reason: a worker that refuses to serve says why, and may say much."""


class ToolAvailability:
    """Looks after the tools of one session.

    Args:
        offers: all of them.
        pools: the workers that run them; none is started to be looked at.
    """

    def __init__(self, offers: Mapping[str, Offer], pools: Pools) -> None:
        self._pools = pools
        self._as_api = [(offer.category, offer.as_api()) for offer in offers.values()]
        self._tools: dict[str, tuple[str, ...]] = {}
        for name, offer in offers.items():
            self._tools[offer.category] = (*self._tools.get(offer.category, ()), name)

    def definitions(self, gone: Mapping[str, object]) -> Sequence[dict[str, Any]]:
        """Return the definitions for the Messages API, without the categories that are gone."""
        return [each for category, each in self._as_api if category not in gone]

    def announcements(self, turn: int, gone: Mapping[str, tuple[str, ...]]) -> list[ToolsChanged]:
        """Return the facts for a model that knows these categories as withdrawn."""
        failures = self._failures()
        if not failures and not gone:
            return []
        now = trio.current_time()
        return [
            ToolsChanged(turn, category, self._tools[category], _reason(category, failure, now))
            for category, failure in failures.items()
            if category not in gone
        ] + [ToolsChanged(turn, category, tools) for category, tools in gone.items() if category not in failures]

    def unavailable_tools(self) -> Mapping[str, str]:
        """Return the tools that cannot be called now, each with the reason."""
        now = trio.current_time()
        return {
            tool: _reason(category, failure, now)
            for category, failure in self._failures().items()
            for tool in self._tools[category]
        }

    def why(self, tool: str) -> str:
        """Return why a tool cannot be called now; "" where it can, or where there is none of that name."""
        return self.unavailable_tools().get(tool, "")

    def _failures(self) -> dict[str, CategoryFailure]:
        found = {}
        for category, pool in self._pools.opened.items():
            if category in self._tools and (failure := pool.checkout.failure) is not None:
                found[category] = failure
        return found


def no_answer(
    call: CallStarted,
    error: WorkerError | FrameTooLarge,
    pools: Pools,
    category: str,
    *,
    seconds: float | None = None,
    committing: bool = False,
) -> CallEnded:
    """Return the end of a call that no worker of a category has answered, in `seconds` or in the usual time."""
    if isinstance(error, FrameTooLarge):
        message = f"The arguments have {error.size} bytes; at most {FRAME_LIMIT} can be sent. Send less."
        return outcomes.failed(call, "too_large", message, size=error.size)
    if isinstance(error, WorkerDied):
        seconds = seconds or pools.opened[category].spec.call_timeout
        return outcomes.worker_died(call, error, seconds, committing=committing)
    return outcomes.unavailable(call, error)


def _reason(category: str, failure: CategoryFailure, now: float) -> str:
    return f"The {category} workers are out of order: {one_line(failure.describe(now), _LONGEST)}."
