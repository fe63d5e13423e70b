"""What sessions there are, folded from the journal as it grows."""

from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

from supervisor.agent.transcript import Transcript
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    BatchStarted,
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    SessionChanged,
    SessionDeleted,
    SessionOpened,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.index import SessionIndex, Summary, session_named
from supervisor.journal.journal import Journal, open_journal
from tests.supervisor.journal.harness import execute
from workers.wire.messages import Context

USE: Final = {"type": "tool_use", "id": "a", "name": "read_file", "input": {}}
RESUMED: Final = TurnResumed(1)


def opened(root: str = "/x", cwd: str = "", origin: str = "acp") -> SessionOpened:
    return SessionOpened("vault", "m", Context(root), ("read_file",), origin, "1", cwd=cwd)


def asked(text: str = "hello", turn: int = 1) -> TurnStarted:
    return TurnStarted(turn, text)


def replied(turn: int = 1, **usage: int) -> Replied:
    return Replied(turn, 0, [USE], "tool_use", usage)


def started(call: str = "a", tool: str = "read_file") -> CallStarted:
    return CallStarted(1, call, tool, "{}", False, "allow", "")


def ended(status: str = "ok", turn: int = 1) -> TurnEnded:
    return TurnEnded(turn, status, "yes")  # type: ignore[arg-type]


def refreshed(journal: Journal) -> SessionIndex:
    index = SessionIndex(journal)
    index.refresh()
    return index


def summary(journal: Journal, *facts: Fact) -> Summary:
    journal.append("s", opened(), *facts)
    return summary_of(journal)


def summary_of(journal: Journal) -> Summary:
    found = refreshed(journal).get("s")
    assert found is not None
    return found


# one session -------------------------------------------------------------------------------------------------


def test_a_summary_tells_of_the_whole_session(journal: Journal) -> None:
    journal.append("s", opened("/home/me/vault", "/home/me", "acp:console"), asked("first\nline"))
    journal.append("s", replied(input_tokens=3, output_tokens=1), started(), started("b", "list_files"))
    journal.append("s", CallEnded(1, "a", "read_file", True, ""), replied(output_tokens=2), ended(), asked("two", 2))
    first, *_, last = journal.of_session("s")
    assert refreshed(journal).get("s") == Summary(
        session="s",
        origin="acp:console",
        profile="vault",
        model="m",
        root="/home/me/vault",
        cwd="/home/me",
        opened_at=first.at,
        updated_at=last.at,
        turns=2,
        title="first line",
        state="open",
        open_turn=True,
        calls=2,
        tools=("read_file", "list_files"),
        usage={"input_tokens": 3, "output_tokens": 3},
    )


def test_a_commit_that_was_lost_with_its_worker_is_not_counted(journal: Journal) -> None:
    committed = CallDecided(1, "a", "allow", "", committed=True)
    again = msgspec.structs.replace(started(), again=True)
    assert summary(journal, asked(), replied(), started(), committed).commits == 1
    journal.append("s", again)
    assert summary_of(journal).commits == 0
    journal.append("s", committed)
    assert summary_of(journal).commits == 1


FATES: Final[dict[str, tuple[list[Fact], str]]] = {
    "no turn": ([], "-"),
    "a turn at work": ([asked()], "open"),
    "a turn that ended": ([asked(), ended()], "ok"),
    "an error": ([asked(), ended("error")], "error"),
    "a turn after it": ([asked(), ended("error"), asked("x", 2)], "open"),
    "the last of several": ([asked(), ended(), asked("x", 2), ended("cancelled", 2)], "cancelled"),
}


@pytest.mark.parametrize(("facts", "state"), FATES.values(), ids=FATES)
def test_a_session_is_in_the_state_of_its_last_turn(journal: Journal, facts: list[Fact], state: str) -> None:
    found = summary(journal, *facts)
    assert (found.state, found.open_turn) == (state, state == "open")


RESUMPTIONS: Final[list[list[Fact]]] = [
    [asked()],
    [asked(), RESUMED, RESUMED],
    [asked(), replied(), started(), RESUMED, CallEnded(1, "a", "read_file", False, "", kind="cancelled"), RESUMED],
    [asked(), RESUMED, replied()],
    [asked(), RESUMED, replied(), RESUMED],
    [asked(), RESUMED, ended("error")],
    [asked(), RESUMED, ended("error"), asked("x", 2), TurnResumed(2)],
]


@pytest.mark.parametrize("facts", RESUMPTIONS, ids=[str(number) for number in range(len(RESUMPTIONS))])
def test_resumptions_are_counted_as_in_the_transcript(journal: Journal, facts: list[Fact]) -> None:
    assert summary(journal, *facts).resumed == Transcript(facts).resumed


def test_a_change_of_profile_and_model_shows(journal: Journal) -> None:
    found = summary(journal, SessionChanged("project", "other", Context("/y"), ()))
    assert (found.profile, found.model, found.root) == ("project", "other", "/y")


def test_a_title_is_one_short_line_that_moves_no_terminal(journal: Journal) -> None:
    title = summary(journal, asked("a\x1b[2J\n" + "x" * 1000)).title
    assert len(title) == 100
    assert title.startswith("a\\x1b[2J xxx")


def test_a_title_is_the_first_line_that_has_words(journal: Journal) -> None:
    assert summary(journal, asked(" \n"), ended(), asked("two", 2), ended(turn=2), asked("three", 3)).title == "two"


# the journal grows -------------------------------------------------------------------------------------------


def test_a_refresh_reads_only_what_is_new(journal: Journal) -> None:
    journal.append("s", opened(), asked())
    index = SessionIndex(journal)
    rows: list[int] = []

    class Counted:
        def since(self, seq: int, digest: bytes) -> Iterator[object]:
            for entry, its_own in journal.since(seq, digest):
                rows.append(entry.seq)
                yield entry, its_own

    index._journal = Counted()  # type: ignore[assignment]
    index.refresh()
    journal.append("s", ended())
    index.refresh()
    index.refresh()
    assert rows == [1, 2, 3]


def test_it_sees_what_another_process_writes(journal: Journal) -> None:
    index = refreshed(journal)
    with open_journal(journal.path) as other:
        journal.append("mine", opened())
        other.append("theirs", opened(), asked("from elsewhere"))
        journal.append("mine", asked("from here"))
        index.refresh()
        other.append("theirs", ended())
        index.refresh()
    assert [(each.session, each.title, each.state) for each in index] == [
        ("mine", "from here", "open"),
        ("theirs", "from elsewhere", "ok"),
    ]


def test_an_index_that_grew_is_the_one_that_is_made_anew(journal: Journal) -> None:
    index = SessionIndex(journal)
    for number in range(20):
        journal.append(f"s{number % 3}", opened() if number < 3 else asked(f"{number}", number), RESUMED)
        index.refresh()
    assert list(index) == list(refreshed(journal))


def test_facts_of_no_session_are_none(journal: Journal) -> None:
    journal.append("b", BatchStarted("run", "/out"))
    journal.append("lost", asked())
    index = refreshed(journal)
    assert (list(index), index.get("b"), index.get("nobody")) == ([], None, None)


def test_a_summary_is_not_changed_by_what_comes_later(journal: Journal) -> None:
    journal.append("s", opened(), replied(output_tokens=1))
    index = refreshed(journal)
    before = index.get("s")
    journal.append("s", replied(output_tokens=1), asked())
    index.refresh()
    assert before is not None
    assert (before.usage, before.turns) == ({"output_tokens": 1}, 0)


def test_a_row_that_cannot_be_read_costs_no_session(journal: Journal) -> None:
    journal.append("s", opened(), asked())
    execute(journal.path, "INSERT INTO facts VALUES (3, 's', 0, CAST('{\"fact\":\"FromTomorrow\"}' AS BLOB), x'00')")
    execute(journal.path, "INSERT INTO facts VALUES (4, 't', 0, CAST('no opening' AS BLOB), x'00')")
    journal.append("t", asked())
    index = refreshed(journal)
    found = [(each.session, each.turns, each.state, each.open_turn) for each in index]
    assert found == [("s", 1, "damaged", False), ("t", 1, "open", True)]


# listings ----------------------------------------------------------------------------------------------------


@pytest.fixture
def several(journal: Journal) -> SessionIndex:
    """Sessions a, b, c, d, opened in this order, b updated last; c is deleted, d a batch's."""
    journal.append("a", opened(cwd="/one"))
    journal.append("b", opened(cwd="/two"))
    journal.append("c", opened(cwd="/one"), SessionDeleted())
    journal.append("d", opened(origin="batch:1:1"))
    journal.append("b", asked())
    return refreshed(journal)


LISTINGS: Final[dict[str, tuple[dict[str, object], str]]] = {
    "all but the deleted, the last updated first": ({}, "bda"),
    "of a directory": ({"cwd": "/one"}, "a"),
    "of a directory beneath": ({"cwd": "/one/more"}, ""),
    "without a directory": ({"cwd": ""}, "d"),
    "the first": ({"limit": 1}, "b"),
    "the next": ({"offset": 1, "limit": 1}, "d"),
    "the rest": ({"offset": 1}, "da"),
    "beyond the end": ({"offset": 9, "limit": 9}, ""),
    "of an origin": ({"where": lambda each: not each.origin.startswith("batch:")}, "ba"),
    "of an origin, the second": ({"where": lambda each: each.origin == "acp", "offset": 1, "limit": 1}, "a"),
}


@pytest.mark.parametrize(("options", "found"), LISTINGS.values(), ids=LISTINGS)
def test_a_listing_holds(several: SessionIndex, options: dict[str, object], found: str) -> None:
    assert "".join(each.session for each in several.listing(**options)) == found  # type: ignore[arg-type]


def test_a_listing_looks_at_no_more_sessions_than_it_needs(journal: Journal) -> None:
    for number in range(100):
        journal.append(f"{number}", opened())
    looked_at: list[str] = []

    def look(each: Summary) -> bool:
        looked_at.append(each.session)
        return True

    found = refreshed(journal).listing(offset=1, limit=2, where=look)
    assert ([each.session for each in found], looked_at) == (["98", "97"], ["99", "98", "97"])


def test_a_deleted_session_is_still_known(several: SessionIndex) -> None:
    deleted = several.get("c")
    assert deleted is not None
    assert deleted.deleted
    assert [each.session for each in several] == ["a", "b", "c", "d"]


def test_rows_of_one_instant_are_listed_by_their_order(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor.journal.journal_file.time.time", lambda: 5.0)
    for session in "abc":
        journal.append(session, opened())
    journal.append("a", asked())
    assert "".join(each.session for each in refreshed(journal).listing()) == "acb"


# by name -----------------------------------------------------------------------------------------------------


@pytest.fixture
def named(journal: Journal) -> Journal:
    for session in ("x-1", "1", "y-2"):
        journal.append(session, opened())
    return journal


@pytest.mark.parametrize(("name", "session"), [("x-1", "x-1"), ("1", "1"), ("y-2", "y-2"), ("2", "y-2")])
def test_a_session_is_found_by_its_id_or_the_end_of_it(named: Journal, name: str, session: str) -> None:
    assert session_named(named, name)[0].session == session


@pytest.mark.parametrize(("name", "words"), [("3", "No session '3'"), ("", "3 sessions end in ''")])
def test_a_name_of_none_or_of_several_is_refused(named: Journal, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        session_named(named, name)
