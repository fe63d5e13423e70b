"""What other processes of a home have used counts once, wherever this process, a session or the day begins."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from supervisor.agent.amount import Amount
from supervisor.agent.ledger import Ledger, midnight_after
from supervisor.config.config_keys import BudgetConfig, BudgetsConfig
from supervisor.journal.facts import BudgetReserved, Fact, Replied, TurnEnded, TurnStarted, TurnSuspended
from supervisor.journal.journal import Journal
from supervisor.session.leases import Leases
from tests.supervisor.bench import begun, vault

RESERVED: Final = BudgetReserved(1, 40_000, 0)


def daily(journal: Journal) -> Ledger:
    """Return the ledger of a process that begins, with a budget of the day."""
    return Ledger(journal, config=BudgetsConfig(day=BudgetConfig(tokens=50_000)))


def used_of(ledger: Ledger) -> tuple[int, int]:
    """Return the tokens that all processes have used of the day, and how many of them are only reserved."""
    ledger.read_others()
    used, promised = ledger.today().with_others()
    return used.tokens, promised.tokens


def test_a_request_that_was_made_before_this_process_began_counts_once(journal: Journal) -> None:
    journal.append("theirs", TurnStarted(1, "go"), RESERVED)
    ledger = daily(journal)
    assert used_of(ledger) == (40_000, 40_000)
    journal.append("theirs", Replied(1, 1, [], "end_turn", {"input_tokens": 8, "output_tokens": 2}))
    assert used_of(ledger) == (10, 0)


def test_what_is_given_back_after_midnight_is_not_taken_off_the_new_day(journal: Journal) -> None:
    journal.append("theirs", BudgetReserved(1, -40_000, 0), BudgetReserved(1, 100, 0))
    assert used_of(daily(journal)) == (100, 100)


def test_a_reservation_of_a_dead_process_counts_and_is_not_waited_for(journal: Journal, tmp_path: Path) -> None:
    ledger = daily(journal)
    with Leases.open(tmp_path) as ours:
        ledger.runs_elsewhere = ours.held_elsewhere
        with Leases.open(tmp_path) as theirs:
            assert theirs.acquire("theirs")
            journal.append("theirs", TurnStarted(1, "go"), RESERVED)
            assert used_of(ledger) == (40_000, 40_000)
        assert used_of(ledger) == (40_000, 0)


@pytest.mark.parametrize("end", [TurnEnded(1, "cancelled", ""), TurnSuspended(1, "budget", "so")])
def test_a_request_that_got_lost_is_not_waited_for_once_its_turn_goes_no_further(journal: Journal, end: Fact) -> None:
    journal.append("theirs", TurnStarted(1, "go"), RESERVED, end)
    assert used_of(daily(journal)) == (40_000, 0)


def test_a_session_that_another_process_takes_up_is_counted_as_its(journal: Journal) -> None:
    ledger = daily(journal)
    journal.append("s", BudgetReserved(1, 100, 0))
    ledger.run_here("s", "")
    journal.append("s", BudgetReserved(2, 1000, 0))
    assert used_of(ledger) == (100, 100)
    ledger.leave("s")
    journal.append("s", BudgetReserved(3, 10_000, 0))
    assert used_of(ledger)[0] == 10_100


def test_a_batch_counts_what_was_used_before_its_first_session_runs_here(journal: Journal, root: Path) -> None:
    ledger = Ledger(journal)
    opened = msgspec.structs.replace(begun(journal, vault(root), None).opened, origin="batch:r:1")
    journal.append("theirs", opened, BudgetReserved(1, 1000, 0))
    ledger.run_here("ours", "r")
    journal.append("ours", opened, BudgetReserved(1, 100, 0))
    assert ledger.batch("r").used == Amount(1000)


def test_what_is_under_way_at_midnight_counts_for_both_days(journal: Journal, tmp_path: Path) -> None:
    now = [time.time()]
    ledger = Ledger(journal, lambda: now[0], BudgetsConfig(day=BudgetConfig(tokens=50_000)))
    with Leases.open(tmp_path) as ours, Leases.open(tmp_path) as theirs:
        ledger.runs_elsewhere = ours.held_elsewhere
        assert theirs.acquire("theirs")
        journal.append("theirs", RESERVED, TurnStarted(2, "go"), RESERVED)
        ended, runs = ledger.take(Amount(500), ""), ledger.take(Amount(1000), "")
        ledger.settle(ended, Amount(300))
        assert used_of(ledger) == (81_300, 41_000)
        now[0] = midnight_after(now[0])
        assert used_of(ledger) == (41_000, 41_000)
        ledger.settle(runs, Amount(900))
        assert used_of(ledger) == (40_900, 40_000)


def test_a_day_that_begins_again_as_the_clock_goes_back_has_used_what_it_had(journal: Journal) -> None:
    now = [today := time.time()]
    ledger = Ledger(journal, lambda: now[0], BudgetsConfig(day=BudgetConfig(tokens=50_000)))
    ledger.run_here("ours", "")
    journal.append("ours", RESERVED, Replied(1, 1, [], "end_turn", {"input_tokens": 300, "output_tokens": 200}))
    ledger.settle(ledger.take(Amount(40_000), ""), Amount(500))
    for moment, used in ((today, 500), (midnight_after(today), 0), (today, 500), (today + 1, 500)):
        now[0] = moment
        assert used_of(ledger) == (used, 0)


@pytest.fixture(
    params=["CST5CDT,M3.2.0/0,M11.1.0/1", "EET-2EEST,M4.5.5/0,M10.5.4/24", "<-01>1<+00>,M3.5.0/0,M10.5.0/1"],
    ids=["midnight twice", "no midnight", "midnight twice in Europe"],
)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The rules of Havana, Cairo and the Azores, as the clock of this machine."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_day_is_one_day_also_where_clocks_are_changed_at_midnight() -> None:
    now = [0.0]
    ledger, begun = Ledger(clock=lambda: now[0]), 0
    for hour in range(24 * 366):
        now[0] = 1_767_225_600 + hour * 3600.0 + 1800
        begun += ledger.today().used == Amount()
        ledger.add(Amount(1), "")
    assert begun == 366 + 1  # of the first or the last there is a part
