"""Spending of other processes of the same home, for the budget of the day.

Rule: the journal's order decides. A reservation is durable before its request is made; one that does not fit behind
those that stand before it is given back. Sessions that run here are left out, from the row on from which they do: the
ledger has them.
"""

import math
from typing import Final

from supervisor.agent.amount import NOTHING, Amount
from supervisor.agent.spending import Spending
from supervisor.journal.facts import BudgetReserved
from supervisor.journal.journal import Journal

_ANSWERED_S: Final = 900.0
"""Seconds after which a reservation of a process that may be dead is no longer expected to be settled."""


class OthersSpending:
    """What other processes have used of a day since this one began; what was used before is the ledger's.

    Args:
        journal: of the home.
        last: its row at which this process began.
    """

    def __init__(self, journal: Journal, last: int) -> None:
        self._journal = journal
        self._last = last
        """The row up to which it has been read."""
        self._here: dict[str, int] = {}
        """The row after which a session runs here."""
        self.begin_day()

    def begin_day(self) -> None:
        """Forget what was used: another day has begun."""
        self.used = NOTHING
        self._sessions: dict[str, Spending] = {}
        self._reserved: dict[str, tuple[Amount, float]] = {}
        """What is only reserved of it, by session, and when it was."""

    def run_here(self, session: str) -> None:
        """Leave a session out from here on."""
        self._here.setdefault(session, self._journal.last())

    def leave(self, session: str) -> None:
        """Count a session that was closed here where another process takes it up."""
        if self._journal.last() == self._last:
            self._here.pop(session, None)

    def read(self, since: float, session: str = "") -> Amount:
        """Read what was recorded since the last time; return what others had used before a session's last reservation.

        That is all that they have used where none of it is among what was read.
        """
        last, before = self._journal.last(), None
        for entry in self._journal.spending(since, last, after=self._last):
            if entry.seq > self._here.get(entry.session, math.inf):
                if entry.session == session and isinstance(entry.fact, BudgetReserved):
                    before = self.used
                continue
            spending = self._sessions.setdefault(entry.session, Spending())
            known = spending.session
            spending.apply(entry.fact)
            self.used = self.used.plus(spending.session.minus(known))
            self._reserved.pop(entry.session, None)
            if spending.reserved != NOTHING:
                self._reserved[entry.session] = spending.reserved, entry.at
        self._last = last
        return self.used if before is None else before

    def promised(self, now: float) -> Amount:
        """Return what is only reserved, for requests that may still run."""
        found = NOTHING
        for amount, at in self._reserved.values():
            if at > now - _ANSWERED_S:
                found = found.plus(amount)
        return found
