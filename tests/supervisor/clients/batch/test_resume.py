"""A batch is taken up again as the batch that it was, or not at all."""

import json
import signal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.journal.facts import SessionOpened, TurnEnded, TurnStarted
from tests.forked import ForkedStrongroom
from tests.messages_server import Recorded, Response, reply
from tests.supervisor.clients.shared import Guest
from tests.supervisor.command import Done, Strongroom, finished
from tests.supervisor.histories import call, script

ITEM: Final = {"id": "begun", "prompts": ["first", "second"]}
NEW: Final = {"id": "new", "prompt": "write new.txt: 1", "model": "offline"}


class Change(NamedTuple):
    name: str
    item: dict[str, Any]
    options: tuple[str, ...] = ()


CHANGES: Final = [
    Change("another prompt", {**ITEM, "prompts": ["other", "second"]}),
    Change("another second prompt", {**ITEM, "prompts": ["first", "other"]}),
    Change("fewer prompts", {"id": "begun", "prompt": "first"}),
    Change("the prompts in another order", {**ITEM, "prompts": ["second", "first"]}),
    Change("a prompt twice", {**ITEM, "prompts": ["first", "first", "second"]}),
    Change("another root", {**ITEM, "root": "other"}),
    Change("another root for all", ITEM, ("--root", "other")),
    Change("another profile", {**ITEM, "profile": "project"}),
    Change("another profile for all", ITEM, ("--profile", "project")),
    Change("another model", {**ITEM, "model": "offline"}),
    Change("another model for all", ITEM, ("--model", "offline")),
]


def killed_in_its_second_turn(strongroom: Strongroom) -> Strongroom:
    (strongroom.folder / "other").mkdir()
    script(strongroom.folder, {"calls": [call("read_file", path="a.txt")]}, {"text": "one"}, {"text": "two"})
    assert resumed(strongroom, [ITEM], program=("tests.supervisor.dying", "after", "7")).code < 0
    asked = [fact.text for fact in strongroom.facts if isinstance(fact, TurnStarted)]
    assert asked == ["first", "second"]
    return strongroom


@pytest.fixture
def begun(strongroom: Strongroom, root: Path) -> Strongroom:
    """A batch of one item that was killed in its second turn."""
    return killed_in_its_second_turn(strongroom)


@pytest.fixture(scope="module")
def begun_for_all(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """The same, for rows that must leave it as it is."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "root").mkdir()
    (folder / "root" / "a.txt").write_text("hello\n")
    return killed_in_its_second_turn(ForkedStrongroom(folder / "home", folder))


def resumed(
    strongroom: Strongroom, items: list[dict[str, Any]], *options: str, program: tuple[str, ...] = ("supervisor",)
) -> Done:
    (strongroom.folder / "in").write_text("\n".join(map(json.dumps, items)))
    model = f"scripted:{strongroom.folder / 'script.jsonl'}"
    arguments = ("batch", "in", "--output", "out.jsonl", "--resume", "--root", "root", "--model", model)
    return strongroom.run(*arguments, *options, program=program)


def ids(strongroom: Strongroom) -> list[str]:
    return [json.loads(line)["id"] for line in (strongroom.folder / "out.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("change", CHANGES, ids=[change.name for change in CHANGES])
def test_an_item_that_was_begun_is_not_resumed_as_another(begun_for_all: Strongroom, change: Change) -> None:
    begun = begun_for_all
    before = begun.facts
    done = resumed(begun, [NEW, change.item], *change.options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: The item 'begun' was started with another prompt, root, profile or model")
    (session,) = [name for name, facts in begun.sessions.items() if isinstance(facts[0], SessionOpened)]
    assert f"(session {session})" in done.err
    assert begun.facts == before
    assert ids(begun) == []
    assert not list(begun.folder.glob("*/new.txt"))


def test_as_it_was_it_goes_on(begun: Strongroom) -> None:
    assert resumed(begun, [NEW, ITEM]).code == 0
    assert sorted(ids(begun)) == ["begun", "new"]
    asked = [fact.text for fact in begun.facts if isinstance(fact, TurnStarted)]
    assert sorted(asked) == ["first", "second", "write new.txt: 1"]


def test_prompts_may_be_added_to_an_item(begun: Strongroom) -> None:
    script(begun.folder, {"text": "0"}, {"text": "one"}, {"text": "two"}, {"text": "three"})
    assert resumed(begun, [{**ITEM, "prompts": ["first", "second", "third"]}]).code == 0
    asked = [fact.text for fact in begun.facts if isinstance(fact, TurnStarted)]
    assert asked == ["first", "second", "third"]


def test_a_turn_that_was_cancelled_is_asked_again_and_counts_once(guest: Guest, root: Path) -> None:
    def interrupt(_request: Recorded) -> None:
        if len(guest.requests) in {2, 3}:
            process.send_signal(signal.SIGINT)

    (guest.folder / "in").write_text(json.dumps({"id": 1, "prompts": ["same", "other", "same"]}))
    arguments = ("batch", "in", "--output", "out.jsonl", "--resume", "--root", "root", "--model", "m")
    silence: Response = {"sse": "", "then": "hang"}
    codes: list[int] = []
    guest.play([reply("1"), silence, silence, reply("2"), reply("3")], interrupt)
    for _ in range(3):
        process = guest.start(*arguments)
        codes.append(finished(process).code)
    assert codes == [130, 130, 0]
    asked = [fact.text for fact in guest.facts if isinstance(fact, TurnStarted)]
    ends = [fact.status for fact in guest.facts if isinstance(fact, TurnEnded)]
    assert asked == ["same", "other", "other", "other", "same"]
    assert ends == ["ok", "cancelled", "cancelled", "ok", "ok"]
