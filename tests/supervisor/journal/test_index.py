"""What sessions there are, folded from the journal as it grows."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from supervisor.agent.transcript import Transcript
from supervisor.errors import ConfigError, JournalError
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


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal.db") as journal:
        yield journal


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


class Fate(NamedTuple):
    name: str
    facts: list[Fact]
    state: str
    open_turn: bool


FATES: Final = [
    Fate("no turn", [], "-", open_turn=False),
    Fate("a turn at work", [asked()], "open", open_turn=True),
    Fate("a turn that ended", [asked(), ended()], "ok", open_turn=False),
    Fate("an error", [asked(), ended("error")], "error", open_turn=False),
    Fate("a turn after it", [asked(), ended("error"), asked("x", 2)], "open", open_turn=True),
    Fate("the last of several", [asked(), ended(), asked("x", 2), ended("cancelled", 2)], "cancelled", open_turn=False),
]


@pytest.mark.parametrize("fate", FATES, ids=[fate.name for fate in FATES])
def test_a_session_is_in_the_state_of_its_last_turn(journal: Journal, fate: Fate) -> None:
    found = summary(journal, *fate.facts)
    assert (found.state, found.open_turn) == (fate.state, fate.open_turn)


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
        def since(self, seq: int) -> Iterator[object]:
            for entry in journal.since(seq):
                rows.append(entry.seq)
                yield entry

    index._journal = Counted()  # type: ignore[assignment]
    index.refresh()
    journal.append("s", ended())
    index.refresh()
    index.refresh()
    assert (rows, index.seen) == ([1, 2, 3], 3)


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


def test_what_is_no_session_is_none(journal: Journal) -> None:
    journal.append("b", BatchStarted("run", "/out"))
    journal.append("lost", asked())
    index = refreshed(journal)
    assert (list(index), index.get("b"), index.get("nobody"), index.seen) == ([], None, None, 2)


def test_a_summary_is_not_changed_by_what_comes_later(journal: Journal) -> None:
    journal.append("s", opened(), replied(output_tokens=1))
    index = refreshed(journal)
    before = index.get("s")
    journal.append("s", replied(output_tokens=1), asked())
    index.refresh()
    assert before is not None
    assert (before.usage, before.turns) == ({"output_tokens": 1}, 0)


def test_a_row_that_cannot_be_read_is_an_error_each_time(journal: Journal) -> None:
    journal.append("s", opened(), asked())
    with sqlite3.connect(journal.path) as connection:
        connection.execute("INSERT INTO facts VALUES (3, 's', 0, CAST('{\"fact\":\"FromTomorrow\"}' AS BLOB), x'00')")
    connection.close()
    index = SessionIndex(journal)
    for _ in range(2):
        with pytest.raises(JournalError, match="this version cannot read"):
            index.refresh()
    assert [(each.session, each.turns) for each in index] == [("s", 1)]


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


class Wanted(NamedTuple):
    name: str
    options: dict[str, object]
    found: str


LISTINGS: Final = [
    Wanted("all but the deleted, the last updated first", {}, "bda"),
    Wanted("of a directory", {"cwd": "/one"}, "a"),
    Wanted("of a directory beneath", {"cwd": "/one/more"}, ""),
    Wanted("without a directory", {"cwd": ""}, "d"),
    Wanted("the first", {"limit": 1}, "b"),
    Wanted("the next", {"offset": 1, "limit": 1}, "d"),
    Wanted("the rest", {"offset": 1}, "da"),
    Wanted("beyond the end", {"offset": 9, "limit": 9}, ""),
    Wanted("of an origin", {"origin": lambda origin: not origin.startswith("batch:")}, "ba"),
    Wanted("of an origin, the second", {"origin": lambda origin: origin == "acp", "offset": 1, "limit": 1}, "a"),
]


@pytest.mark.parametrize("wanted", LISTINGS, ids=[wanted.name for wanted in LISTINGS])
def test_a_listing_holds(several: SessionIndex, wanted: Wanted) -> None:
    found = several.listing(**wanted.options)  # type: ignore[arg-type]
    assert "".join(each.session for each in found) == wanted.found


def test_what_was_deleted_is_still_known(several: SessionIndex) -> None:
    deleted = several.get("c")
    assert deleted is not None
    assert deleted.deleted
    assert [each.session for each in several] == ["a", "b", "c", "d"]


def test_rows_of_one_instant_are_listed_by_their_order(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor.journal.journal.time.time", lambda: 5.0)
    for session in "abc":
        journal.append(session, opened())
    journal.append("a", asked())
    assert "".join(each.session for each in refreshed(journal).listing()) == "acb"


# by name -----------------------------------------------------------------------------------------------------


def test_a_session_is_found_by_its_id_or_the_end_of_it(journal: Journal) -> None:
    for session in ("x-1", "1", "y-2"):
        journal.append(session, opened())
    assert [session_named(journal, name)[0].session for name in ("x-1", "1", "y-2", "2")] == ["x-1", "1", "y-2", "y-2"]


@pytest.mark.parametrize(("name", "words"), [("3", "No session '3'"), ("", "2 sessions end in ''")])
def test_a_name_of_none_or_of_several_is_refused(journal: Journal, name: str, words: str) -> None:
    for session in ("x-1", "y-2"):
        journal.append(session, opened())
    with pytest.raises(ConfigError, match=words):
        session_named(journal, name)
