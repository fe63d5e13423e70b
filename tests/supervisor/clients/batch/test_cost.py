"""What a batch does once, however many items it has and however many turns an item has."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import schema
from supervisor.clients.batch import batch_plan, run
from supervisor.clients.batch.batch_plan import Use
from supervisor.clients.batch.items import Item, Result
from supervisor.clients.batch.outputs import OutputFile
from supervisor.config.profiles import Profile, resolve
from supervisor.config.settings import Settings, load
from supervisor.journal.facts import Fact, SessionOpened, TurnEnded, TurnStarted
from supervisor.journal.journal import Journal, JournalEntry, open_journal
from workers.wire.messages import Context

TURNS: Final = 20


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    return load({"STRONGROOM_HOME": str(tmp_path / "home")})


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal.db") as journal:
        yield journal


def test_items_alike_are_resolved_once(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots: list[str] = []

    def counted(*arguments: Any) -> Profile:
        roots.append(arguments[2])
        return resolve(*arguments)

    monkeypatch.setattr(batch_plan, "resolve", counted)
    own, other = str(tmp_path / "root"), str(tmp_path / "other")
    items = [Item(number, "same") for number in range(50)]
    items += [Item(f"other {number}", prompts=(str(number),), root=other) for number in range(50)]
    items += [Item("model", "same", model="scripted:x")]
    found = batch_plan.plan(settings, items, tmp_path / "out", "vault", own, "offline")
    assert roots == [own, other, own]
    assert [(found[name].profile.root, found[name].model) for name in ("49", "other 49")] == [
        (own, "offline"),
        (other, "offline"),
    ]
    assert found["model"].model.startswith("scripted:")


class AnsweringLink:
    """A daemon that records a turn as soon as it is asked for one."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.turns = 0

    def request(self, method: str, _params: object, _result: object) -> schema.NewSessionResult | None:
        if method != "session/new":
            return None
        self.record(SessionOpened("vault", "offline", Context("/root"), (), "batch", "1"))
        return schema.NewSessionResult(session_id="s")

    def submit(self, _method: str, _params: schema.PromptParams) -> "Future[bytes]":
        self.turns += 1
        self.record(TurnStarted(self.turns, "x"), TurnEnded(self.turns, "ok", "yes"))
        done: Future[bytes] = Future()
        done.set_result(b"")
        return done

    def record(self, *facts: Fact) -> None:
        self.journal.append("s", *facts)


class CountedJournal:
    """Tells which rows were read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.rows: list[int] = []

    def of_session(self, session: str, after: int = 0) -> list[JournalEntry]:
        found = self._journal.of_session(session, after)
        self.rows += [entry.seq for entry in found]
        return found


def test_each_fact_of_an_item_is_read_once(journal: Journal, tmp_path: Path) -> None:
    item = Item("many", prompts=("x",) * TURNS)
    using = Use(Profile("vault", "/root", ()), "offline")
    counted, link = CountedJournal(journal), AnsweringLink(journal)
    statuses: list[str] = []
    with closing(OutputFile(tmp_path / "out", resume=False)) as file:
        batch = run._Batch(
            link,  # type: ignore[arg-type]
            counted,  # type: ignore[arg-type]
            file,
            {"many": using},
            "run",
            {},
            lambda result: statuses.append(result.status),
        )
        batch.run([item], 2)
    assert (statuses, link.turns) == (["ok"], TURNS)
    assert counted.rows == list(range(1, 2 * TURNS + 2))


def test_nobody_waits_while_a_result_is_written_to_the_disk(journal: Journal, tmp_path: Path) -> None:
    held: list[bool] = []

    class WatchedFile(OutputFile):
        def write(self, result: Result) -> None:
            held.append(batch._lock.locked())
            super().write(result)

    link: Any = AnsweringLink(journal)
    using = Use(Profile("vault", "/root", ()), "offline")
    with closing(WatchedFile(tmp_path / "out", resume=False)) as file:
        batch = run._Batch(link, journal, file, {"many": using}, "run", {}, lambda _result: None)
        batch.run([Item("many", "x")], 2)
    assert held == [False]
