"""A journal that an earlier version has written, before facts had what was added since: kept beside this test."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from supervisor.journal.facts import Unreadable
from supervisor.journal.journal import open_journal
from supervisor.reports.session_formats import FORMATS
from supervisor.session.earlier_session import read_earlier
from tests.forked import ForkedStrongroom
from tests.supervisor.command import Strongroom
from tests.supervisor.histories import fault_in_history

KEPT: Final = Path(__file__).parent / "earlier_version.db"
KINDS: Final = {
    *("SessionOpened", "SessionChanged", "SessionDeleted", "ModeChanged", "BatchStarted", "BudgetReserved"),
    *("BudgetChanged", "TurnStarted", "TurnResumed", "TurnSuspended", "TurnQuestioned", "TurnEnded", "Replied"),
    *("ModelRetried", "CallStarted", "CallDecided", "CallEnded"),
}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """A home with that journal; the root that it tells of is not there."""
    folder = tmp_path_factory.mktemp("earlier")
    (folder / "home").mkdir(mode=0o700)
    shutil.copy(KEPT, folder / "home/journal.db")
    return ForkedStrongroom(folder / "home", folder)


def test_every_fact_is_read(earlier: Strongroom) -> None:
    facts = earlier.facts
    assert {type(fact).__name__ for fact in facts} == KINDS
    assert not [fact for fact in facts if isinstance(fact, Unreadable)]
    assert earlier.run("verify").out.startswith(f"intact: {len(facts)} facts")


def test_every_session_is_listed_found_and_told_in_every_format(earlier: Strongroom) -> None:
    listed = earlier.run("sessions", "--json", "--all").json
    assert sorted(each["state"] for each in listed) == [*["ok"] * 5, "suspended"]
    assert earlier.run("search", "bye", "--json").json
    for each in listed:
        for form in FORMATS:
            done = earlier.run("history", each["session"], "--format", form)
            assert (done.code, done.err, bool(done.out)) == (0, "", True)


def test_every_conversation_can_go_on(earlier: Strongroom) -> None:
    with open_journal(earlier.home / "journal.db") as journal:
        for session in earlier.sessions:
            if session.startswith("batch"):
                continue
            transcript = read_earlier(journal, session).transcript
            for fact in transcript.closing_facts():
                transcript.apply(fact)
            assert fault_in_history(transcript.messages) is None
