"""What other processes of a home have used counts once, wherever this process, a session or the day begins."""

from pathlib import Path
from typing import Final

import msgspec

from supervisor.agent.amount import Amount
from supervisor.agent.ledger import Ledger
from supervisor.config.config_keys import BudgetConfig, BudgetsConfig
from supervisor.journal.facts import BudgetReserved, Replied, TurnStarted
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
