"""A request that budgets count: reserved before it is made, settled with what its reply says.

Rule: what nobody saw the end of counts in full, in the ledger as in the facts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from supervisor.agent.allowance import Allowance
from supervisor.agent.amount import NOTHING, Amount
from supervisor.agent.ledger import Reservation
from supervisor.journal.facts import BudgetReserved


class PaidRequest:
    """One request, and its retries.

    Args:
        allowance: it was reserved from.
        turn: that it is made in.
        reservation: of its first attempt.
        record_at_once: makes a fact durable, and takes it into account.
    """

    def __init__(
        self,
        allowance: Allowance,
        turn: int,
        reservation: Reservation,
        record_at_once: Callable[[BudgetReserved], None],
    ) -> None:
        self._allowance = allowance
        self._turn = turn
        self._reservation: Reservation | None = reservation
        self.amount = reservation.amount
        """What each attempt may use."""
        self._record_at_once = record_at_once

    @property
    def reserved(self) -> BudgetReserved:
        """The fact that says what it may use."""
        return BudgetReserved(self._turn, self.amount.tokens, self.amount.cost)

    def begin_again(self) -> None:
        """Count the attempt so far in full, and reserve another.

        Raises:
            SuspendedTurn: a budget does not hold it.
            JournalError: it cannot be recorded.
        """
        assert self._reservation is not None
        before, self._reservation = self._reservation, None
        self._settle(before, self.amount)
        while self._reservation is None:
            self._reservation = self._allowance.reserve_again(self._turn, before)
            self._record_at_once(self.reserved)
            if not self._allowance.stands():
                self.give_back()

    def settle(self, used: Amount) -> None:
        """Count what it really used; its reply is recorded by the caller."""
        if self._reservation is not None:
            self._settle(self._reservation, used)
            self._reservation = None

    def give_back(self) -> None:
        """Count nothing: it was never billed.

        Raises:
            JournalError: that cannot be recorded.
        """
        self._record_at_once(BudgetReserved(self._turn, -self.amount.tokens, -self.amount.cost))
        self.settle(NOTHING)

    @contextmanager
    def counted_in_full(self) -> Iterator[None]:
        """Count it in full where the block fails: nobody knows what was recorded of it."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Count it in full, unless it was settled."""
        self.settle(self.amount)

    def _settle(self, reservation: Reservation, used: Amount) -> None:
        self._allowance.ledger.settle(reservation, used)
