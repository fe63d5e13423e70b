"""The tool recall: what it finds of its own session, whose words that stays, and that no other session is reached."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from scripts.benchmarks.growth.finds import had_back
from scripts.benchmarks.growth.planted_facts import conversation, planted_facts
from supervisor.journal.facts import CallEnded, CallStarted, Fact, ForkPoint, Replied, Rewound, TurnEnded, TurnStarted
from supervisor.journal.journal import open_journal
from supervisor.journal.search_index import file_of
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.session_recall import recall
from tests.supervisor.histories import opening_fact
from tests.supervisor.journal.test_search_index import HOSTILE
from tests.supervisor.tools.exfiltration.test_exposure import WAYS
from workers.url import parse

ADDRESS: Final = "https://garden.example.org/zebrafinch/4711"
TEXT: Final = f"The zebrafinch sings at {ADDRESS} every day."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def record(path: Path, session: str, *facts: Fact) -> None:
    with open_journal(path) as journal:
        journal.append(session, *facts)


async def recalled(path: Path, session: str = "s", **arguments: Any) -> tuple[CallStarted, CallEnded]:
    started = CallStarted(9, "r", "recall", json.dumps(arguments), False, "allow", "")
    return started, await recall(path, session, started)


async def passages(path: Path, query: str, session: str = "s") -> list[dict[str, Any]]:
    _, ended = await recalled(path, session, query=query)
    assert ended.ok, ended.content
    found: list[dict[str, Any]] = msgspec.json.decode(ended.content)
    return found


def said(text: str) -> Replied:
    return Replied(1, 0, [{"type": "text", "text": text}], "end_turn", {})


def outcome(call: str, text: str, **more: Any) -> list[Fact]:
    started = CallStarted(2, call, "read_file", '{"path": "long.md"}', False, "allow", "")
    return [started, msgspec.structs.replace(CallEnded(2, call, "read_file", True, text), **more)]


async def test_passages_come_with_their_turn_their_call_and_whose_they_are(path: Path) -> None:
    record(path, "s", TurnStarted(1, "Where do zebrafinches nest?"), said("In the hedge."), *outcome("c7", TEXT))
    assert await passages(path, "zebrafinch singing") == [
        {"turn": 2, "kind": "result", "tool": "read_file", "call": "c7", "text": TEXT},
        {"turn": 1, "kind": "person", "text": "Where do zebrafinches nest?"},
    ]
    assert (await passages(path, "hedge"))[0]["kind"] == "answer"
    record(path, "s", *(asked := await recalled(path, query="zebrafinch")))
    assert len(await passages(path, "zebrafinch")) == 2, "what was recalled is found no second time"
    again = (await recalled(path, call="r"))[1]
    assert (again.content, bool(again.sources)) == (asked[1].content + f"\nNote: {asked[1].note}", True)


async def test_no_other_session_is_reached(path: Path) -> None:
    record(path, "s", TurnStarted(1, "hello"))
    record(path, "t", TurnStarted(1, "the zebrafinch of t"), *outcome("c7", TEXT))
    for arguments in ({"query": "zebrafinch"}, {"call": "c7"}, {"query": 'place: t "zebrafinch" OR hello zebrafinch'}):
        _, ended = await recalled(path, **arguments)
        assert "garden" not in ended.content
        assert "the zebrafinch" not in ended.content
    assert len(await passages(path, "zebrafinch", session="t")) == 2


async def test_what_a_fork_begins_with_is_its_own_and_what_was_rewound_is_nobodys(path: Path) -> None:
    with open_journal(path) as journal:
        journal.append("s", opening_fact(path.parent), TurnStarted(1, "zebrafinch one"), TurnEnded(1, "ok", ""))
        point = ForkPoint("s", 1, journal.last())
        journal.append("s", TurnStarted(2, "zebrafinch two"), *outcome("c7", TEXT), TurnEnded(2, "ok", ""))
        opened = msgspec.structs.replace(opening_fact(path.parent), fork=point)
        journal.append("f", opened, TurnStarted(2, "zebrafinch, forked"), TurnEnded(2, "ok", ""))
    assert {each["text"] for each in await passages(path, "zebrafinch", "f")} == {
        "zebrafinch one",
        "zebrafinch, forked",
    }
    assert (await recalled(path, "f", call="c7"))[1].kind == "not_found"
    assert (await recalled(path, call="c7"))[1].ok
    record(path, "s", Rewound(1))
    assert [each["text"] for each in await passages(path, "zebrafinch")] == ["zebrafinch one"]
    assert (await recalled(path, call="c7"))[1].kind == "not_found"


async def test_a_whole_outcome_comes_page_by_page_and_cuts_no_word(path: Path) -> None:
    text = "".join(f"word{number} {ADDRESS}\n" for number in range(2_000))
    record(path, "s", *outcome("toolu_c7", text), *outcome("toolu_c8", "short", note="first 3 of 9"))
    read, offset = "", 0
    while True:
        _, ended = await recalled(path, call="c7", offset=offset)
        assert "Of turn 2: read_file long.md." in ended.note
        assert {ADDRESS, *text.split()} >= set(ended.content.split())
        read += ended.content
        if f"offset {len(read)} shows more" not in ended.note:
            break
        offset = len(read)
    assert read == text
    assert (await recalled(path, call="toolu_c8"))[1].content == "short\nNote: first 3 of 9"
    assert (await recalled(path, call="c7", offset=17))[1].content.startswith(f"word1 {ADDRESS}"), (
        "no part of an address"
    )
    failed = CallEnded(3, "c9", "run_cmd", False, "It was killed.", kind="timeout", details={"stdout": "halfway"})
    record(path, "s", failed)
    assert "halfway" in (await recalled(path, call="c9"))[1].content


WRONG: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "nothing": ({}, "invalid_arguments"),
    "both": ({"query": "a", "call": "c7"}, "invalid_arguments"),
    "no word": ({"query": "!?"}, "invalid_arguments"),
    "words that are nowhere": ({"query": "pelican"}, "no_match"),
    "a call that is none": ({"call": "c1"}, "not_found"),
    "the end of several": ({"call": "7"}, "not_found"),
    "another argument": ({"session": "t"}, "invalid_arguments"),
    "too many words": ({"query": "a" * 1001}, "invalid_arguments"),
}


async def test_what_cannot_be_found_is_said(path: Path) -> None:
    record(path, "s", *outcome("c7", TEXT), *outcome("d7", TEXT))
    for arguments, kind in WRONG.values():
        _, ended = await recalled(path, **arguments)
        assert (ended.ok, ended.kind, ended.sources) == (False, kind, ()), arguments
    for query in HOSTILE.values():
        if "\ud800" not in query:
            assert (await recalled(path, query=query[:1000]))[1].kind in (None, "no_match", "invalid_arguments")


async def test_an_index_that_is_damaged_or_cannot_be_written_is_no_end(path: Path) -> None:
    record(path, "s", *outcome("c7", TEXT))
    file_of(path).write_bytes(b"SQLite format 3\x00" + bytes(8_000))
    assert len(await passages(path, "zebrafinch")) == 1
    file_of(path).unlink()
    file_of(path).mkdir()
    _, ended = await recalled(path, query="zebrafinch")
    assert (ended.kind, "journal.search" in ended.content) == ("internal", True)


async def test_what_is_recalled_is_as_foreign_as_it_was_and_no_freer(path: Path) -> None:
    for name, way in WAYS.items():
        shown = way.shown(TEXT)
        record(path, name, *shown, said("zebrafinch, says the model: https://model.example.org/x"))
        calls = [{"call": "c"}] if any(isinstance(fact, CallEnded) for fact in shown) else []
        for arguments in ({"query": "zebrafinch sings"}, *calls):
            started, ended = await recalled(path, name, **arguments)
            seen = SeenText()
            for fact in (started, ended):
                seen.apply(fact)
            assert "zebrafinch" in ended.content, name
            assert bool(seen.foreign) == way.foreign, name
            assert seen.link(parse("https://model.example.org/x")) is None, name
            assert seen.link(parse(ADDRESS)) is None or way.free, name
            assert seen.has_private or set(way.kinds) <= {"person", "page"}, name


async def test_the_models_own_words_are_nobodys(path: Path) -> None:
    record(path, "s", said("A zebrafinch."))
    assert (await recalled(path, query="zebrafinch"))[1].sources == ()


async def test_planted_facts_come_back(path: Path) -> None:
    planted = planted_facts(20)
    record(path, "s", *conversation(planted, 20_000))
    first, second, _ = await had_back(path, "s", planted)
    assert first + second == len(planted)
