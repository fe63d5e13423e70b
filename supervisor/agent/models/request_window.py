"""The window of a provider: how many requests its server has at once.

Rule: additive increase, multiplicative decrease. When the server says that a limit is reached, the window is halved,
once for all requests that it had then; each answer opens it again a little: by one for as many answers as it is wide.
"""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class RequestWindow:
    """The requests of all conversations to one server; without any limit until it says that one is reached."""

    def __init__(self) -> None:
        self.width = math.inf
        """How many requests it may have at once; a whole number and a part of the next place."""
        self.busy = 0
        self._round = 0
        """Counts the times that it was halved."""
        self._waiting = trio.lowlevel.ParkingLot()

    @property
    def _places(self) -> float:
        return self.width if self.width is math.inf else math.floor(self.width)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Wait for a place, in the order of asking; have it for one request. Yield its round, for `limited`."""
        if self.busy >= self._places or self._waiting:
            await self._waiting.park()  # whoever wakes us has counted us already
        else:
            self.busy += 1
        began = self._round
        try:
            yield began
            self._answered(began)
        finally:
            self.busy -= 1
            self._let_in()

    def limited(self, began: int) -> None:
        """Take note that the server has refused a request of a round, because a limit is reached."""
        if began != self._round:
            return
        self.width = max(1.0, min(self.width, float(self.busy + 1)) / 2)
        self._round += 1

    def _answered(self, began: int) -> None:
        if began == self._round and self.width is not math.inf:
            self.width += 1 / self.width

    def _let_in(self) -> None:
        while self._waiting and self.busy < self._places:
            self.busy += 1
            self._waiting.unpark()
