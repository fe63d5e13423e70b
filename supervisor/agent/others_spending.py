"""Spending of other processes of the same home, for the budget of the day.

Rule: the journal's order decides. A reservation is durable before its request is made; one that does not fit behind
those that stand before it is given back. Sessions that run here are left out, from the row on from which they do: the
ledger has them.
"""

import math
from collections.abc import Callable

from supervisor.agent.amount import NOTHING, Amount
from supervisor.agent.spending import Spending
from supervisor.journal.facts import BudgetReserved
from supervisor.journal.journal import Journal


class OthersSpending:
    """What other processes have used of a day, whether or not they run yet or still.

    Args:
        journal: of the home.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._last = 0
        """The row up to which it has been read."""
        self._here: dict[str, int] = {}
        """The row after which a session runs here."""
        self.used = NOTHING
        self._sessions: dict[str, Spending] = {}
        self._reserved: dict[str, Amount] = {}
        """What is only reserved of it, by session."""

    def begin_day(self, runs: Callable[[str], bool], *, again: bool) -> None:
        """Forget what was used, but for what is under way in sessions that run: another day has begun.

        Where it has begun `again`, as the clock went back, all is read anew, what was used here as well.
        """
        if again:
            self._last, self._here = 0, dict.fromkeys(self._here, self._journal.last())
        self._reserved = {} if again else {each: what for each, what in self._reserved.items() if runs(each)}
        self._sessions = {each: self._sessions[each] for each in self._reserved}
        self.used = self.promised(runs)

    def run_here(self, session: str) -> None:
        """Leave a session out from here on."""
        self._here.setdefault(session, self._journal.last())

    def leave(self, session: str) -> None:
        """Count what a closed session, which was read to its end, uses from here on: another process may take it up."""
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
                self._reserved[entry.session] = spending.reserved
        self._last = last
        return self.used if before is None else before

    def promised(self, runs: Callable[[str], bool]) -> Amount:
        """Return what is only reserved, in sessions of which `runs` says that a process has them: it may be settled."""
        found = NOTHING
        for session, amount in self._reserved.items():
            if runs(session):
                found = found.plus(amount)
        return found
