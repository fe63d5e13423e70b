"""The ledger: what all conversations of this process use of the budgets that they share, of the day and of batches.

Rule: nothing is awaited between a look at what is left and taking it. What is reserved counts as used until the reply's
own figures take its place. What other processes have used, earlier ones too, is read from the journal: of the day
wherever its budget is looked at (`others_spending`), of a batch when its first session runs here.
"""

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import trio

from supervisor.agent.amount import NOTHING, Amount
from supervisor.agent.others_spending import OthersSpending
from supervisor.agent.spending import Spending
from supervisor.config.config_keys import BudgetConfig, BudgetsConfig, WaitingConfig
from supervisor.config.model_keys import Price
from supervisor.journal.facts import SessionOpened
from supervisor.journal.journal import Journal, JournalEntry

_LOOK: Final = 0.5
"""Seconds between looks at what other processes have settled, where that is waited for."""
_LONGEST_DAY: Final = 30 * 3600
"""Seconds that no day has, whatever is done to the clocks in it."""


@dataclass
class SharedAmount:
    """What was used of one shared budget, and what of that is only reserved."""

    used: Amount = NOTHING
    promised: Amount = NOTHING
    others: Amount = NOTHING
    """What other processes have used, besides."""
    others_promised: Amount = NOTHING
    """What of that is only reserved."""

    def with_others(self) -> tuple[Amount, Amount]:
        """Return what all processes have used, and what of that is only reserved."""
        return self.used.plus(self.others), self.promised.plus(self.others_promised)


@dataclass(frozen=True)
class Reservation:
    """What one request may use, and for which batch; "" for none."""

    amount: Amount
    run: str


@dataclass
class Ledger:
    """The shared budgets of one process.

    Args:
        journal: what earlier processes have used is read from it; None where there were none.
        clock: seconds since the epoch.
    """

    journal: Journal | None = None
    clock: Callable[[], float] = time.time
    config: BudgetsConfig = field(default_factory=BudgetsConfig)
    """As it is now."""
    waiting: WaitingConfig = field(default_factory=WaitingConfig)
    """How long limits are waited for."""
    price_of: Callable[[str], Price | None] = lambda _model: None
    """Returns what a model's tokens cost, by its name."""
    batch_budgets: dict[str, BudgetConfig] = field(default_factory=dict)
    """Those that batches were started with, by their run."""
    runs_elsewhere: Callable[[str], bool] = lambda _session: True
    """Says whether another process has a session."""

    def __post_init__(self) -> None:
        self._day = self._day_ends = self._latest = 0.0
        self._today = SharedAmount()
        self._batches: dict[str, SharedAmount] = {}
        self._settled = trio.lowlevel.ParkingLot()
        self._others = None if self.journal is None else OthersSpending(self.journal)

    def price(self, model: str) -> Price | None:
        """Return a model's price, in the currency of the budgets; None where it is not known."""
        price = self.price_of(model)
        return price if price is not None and price.currency == self.config.currency else None

    def use_batch_budget(self, origin: str, budget: Mapping[str, float] | None) -> None:
        """Take note of the budget that a batch was started or resumed with."""
        run = batch_run(origin)
        if run and budget is not None:
            tokens = budget.get("tokens")
            whole = None if tokens is None else int(tokens)
            self.batch_budgets[run] = BudgetConfig(whole, budget.get("cost"), budget.get("seconds"))

    def batch_budget(self, run: str) -> BudgetConfig | None:
        return self.batch_budgets.get(run, self.config.batch) if run else None

    def today(self) -> SharedAmount:
        """Return what this day has used, by the person's clock; of other processes, what `read_others` has found.

        A request that is under way at midnight counts for both days: nobody knows which of them its server bills.
        """
        now = self.clock()
        if not self._day <= now < self._day_ends:
            self._day, self._day_ends = midnight_before(now), midnight_after(now)
            self._today = SharedAmount(self._today.promised, self._today.promised)
            if self._others is not None:
                self._others.begin_day(self.runs_elsewhere, again=self._day <= self._latest)
            self._latest = max(self._latest, self._day)
        return self._today

    def run_here(self, session: str, run: str) -> None:
        """Take note that what a session, which may be for a batch's `run`, uses from here on is told to this ledger."""
        if self._others is not None:
            self._others.run_here(session)
        if run:
            self.batch(run)

    def leave(self, session: str) -> None:
        """Take note that a session was closed, which another process may take up."""
        if self._others is not None and self.config.day is not None:
            self.read_others()
            self._others.leave(session)

    def read_others(self, session: str = "") -> Amount:
        """Read what other processes have used of this day; return what of it stands before a session's reservation."""
        if self._others is None or self.config.day is None:
            return NOTHING
        today = self.today()
        before = self._others.read(self._day, session)
        today.others, today.others_promised = self._others.used, self._others.promised(self.runs_elsewhere)
        return before

    def batch(self, run: str) -> SharedAmount:
        """Return what a batch has used: before its first session ran here, what the journal says."""
        if run not in self._batches:
            self._batches[run] = SharedAmount()
            if self.journal is not None:
                self._batches[run].used = _used_in(_batch_spending(self.journal, run))
        return self._batches[run]

    def take(self, amount: Amount, run: str) -> Reservation:
        for each in self._shared(run):
            each.used, each.promised = each.used.plus(amount), each.promised.plus(amount)
        return Reservation(amount, run)

    def settle(self, reservation: Reservation, used: Amount) -> None:
        """Put what was used in the place of what was reserved."""
        for each in self._shared(reservation.run):
            each.used = each.used.minus(reservation.amount).plus(used)
            each.promised = each.promised.minus(reservation.amount)
        self._settled.unpark_all()

    def add(self, used: Amount, run: str) -> None:
        """Count what was used without a reservation."""
        for each in self._shared(run):
            each.used = each.used.plus(used)

    def _shared(self, run: str) -> list[SharedAmount]:
        return [self.today(), self.batch(run)] if run else [self.today()]

    async def until_settled(self) -> None:
        """Wait until one of the requests that run has ended; those of other processes are looked at now and then."""
        with trio.move_on_after(math.inf if self.today().others_promised == NOTHING else _LOOK):
            await self._settled.park()


def batch_run(origin: str) -> str:
    """Return the run of the batch that a session is for, "batch:RUN:ITEM"; "" where it is for none."""
    kind, _, rest = origin.partition(":")
    return rest.partition(":")[0] if kind == "batch" else ""


def midnight_before(now: float) -> float:
    """Return when the day of a time began on this machine's clock: its first second, also where that comes twice."""
    second = int(now)
    seconds = range(second - _LONGEST_DAY, second + 1)
    return float(seconds[bisect_left(seconds, _date(second), key=_date)])


def midnight_after(now: float) -> float:
    """Return when it ends."""
    second = int(now)
    seconds = range(second, second + _LONGEST_DAY)
    return float(seconds[bisect_right(seconds, _date(second), key=_date)])


def _date(second: int) -> tuple[int, int, int]:
    return time.localtime(second)[:3]


def _used_in(entries: Iterable[JournalEntry]) -> Amount:
    """Return what these facts come to, of whatever sessions."""
    sessions: dict[str, Spending] = {}
    for entry in entries:
        sessions.setdefault(entry.session, Spending()).apply(entry.fact)
    used = NOTHING
    for spending in sessions.values():
        used = used.plus(spending.session)
    return used


def _batch_spending(journal: Journal, run: str) -> Iterator[JournalEntry]:
    for opened in journal.opened():
        if isinstance(opened.fact, SessionOpened) and opened.fact.origin.startswith(f"batch:{run}:"):
            yield from journal.of_session(opened.session)
