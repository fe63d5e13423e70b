"""A batch is taken up again as the batch that it was, or not at all."""

import json
import signal
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest

from supervisor.journal.facts import SessionOpened
from tests.forked import ForkedStrongroom
from tests.messages_server import reply
from tests.script_server import Recorded, Response
from tests.supervisor.clients.shared import Begun, Guest
from tests.supervisor.command import Done, Strongroom, finished
from tests.supervisor.histories import call, script

ITEM: Final = {"id": "begun", "prompts": ["first", "second"]}
NEW: Final = {"id": "new", "prompt": "write new.txt: 1", "model": "offline"}

CHANGES: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "another prompt": ({"prompts": ["other", "second"]}, ()),
    "another second prompt": ({"prompts": ["first", "other"]}, ()),
    "fewer prompts": ({"prompts": None, "prompt": "first"}, ()),
    "the prompts in another order": ({"prompts": ["second", "first"]}, ()),
    "a prompt twice": ({"prompts": ["first", "first", "second"]}, ()),
    "another root": ({"root": "other"}, ()),
    "another root for all": ({}, ("--root", "other")),
    "another profile": ({"profile": "project"}, ()),
    "another profile for all": ({}, ("--profile", "project")),
    "another model": ({"model": "offline"}, ()),
    "another model for all": ({}, ("--model", "offline")),
    "another mode for all": ({}, ("--mode", "plan")),
}


def killed_in_its_second_turn(strongroom: Strongroom) -> Strongroom:
    (strongroom.folder / "other").mkdir()
    script(strongroom.folder, {"calls": [call("read_file", path="a.txt")]}, {"text": "one"}, {"text": "two"})
    assert resumed(strongroom, [ITEM], program=("tests.supervisor.dying", "after", "7")).code < 0
    assert strongroom.asked == ["first", "second"]
    return strongroom


@pytest.fixture
def begun(strongroom: Strongroom, root: Path) -> Strongroom:
    """A batch of one item that was killed in its second turn."""
    return killed_in_its_second_turn(strongroom)


@pytest.fixture(scope="module")
def begun_for_all(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """The same, for rows that must leave it as it is."""
    return killed_in_its_second_turn(ForkedStrongroom.beside_a_root(tmp_path_factory.mktemp("begun")))


def resumed(
    strongroom: Strongroom, items: list[dict[str, Any]], *options: str, program: tuple[str, ...] = ("supervisor",)
) -> Done:
    model = f"scripted:{strongroom.folder / 'script.jsonl'}"
    arguments = strongroom.batch_of("\n".join(map(json.dumps, items)), "--resume", *options, model=model)
    return strongroom.run(*arguments, program=program)


def ids(strongroom: Strongroom) -> list[str]:
    return [each["id"] for each in strongroom.results]


@pytest.mark.parametrize(("change", "options"), CHANGES.values(), ids=CHANGES)
def test_an_item_that_was_begun_is_not_resumed_as_another(
    begun_for_all: Strongroom, change: dict[str, Any], options: tuple[str, ...]
) -> None:
    begun = begun_for_all
    before = begun.facts
    done = resumed(begun, [NEW, ITEM | change], *options)
    (session,) = [name for name, facts in begun.sessions.items() if isinstance(facts[0], SessionOpened)]
    done.assert_refused(f"(session {session})")
    assert done.err.startswith(
        "error: The item 'begun' was started with another prompt, schema, root, profile, model or mode"
    )
    assert begun.facts == before
    assert ids(begun) == []
    assert not list(begun.folder.glob("*/new.txt"))


def test_as_it_was_it_goes_on(begun: Strongroom) -> None:
    assert resumed(begun, [NEW, ITEM]).code == 0
    assert sorted(ids(begun)) == ["begun", "new"]
    assert sorted(begun.asked) == ["first", "second", "write new.txt: 1"]


def test_prompts_may_be_added_to_an_item(begun: Strongroom) -> None:
    script(begun.folder, {"text": "0"}, {"text": "one"}, {"text": "two"}, {"text": "three"})
    assert resumed(begun, [{**ITEM, "prompts": ["first", "second", "third"]}]).code == 0
    assert begun.asked == ["first", "second", "third"]


def test_a_turn_that_was_cancelled_is_asked_again_and_counts_once(guest: Guest, root: Path) -> None:
    running: Begun = SimpleQueue()

    def interrupt(_request: Recorded) -> None:
        if len(guest.requests) in {2, 3}:
            running.get().send_signal(signal.SIGINT)

    arguments = guest.batch_of(json.dumps({"id": 1, "prompts": ["same", "other", "same"]}), "--resume", model="m")
    silence: Response = {"sse": "", "then": "hang"}
    codes: list[int] = []
    guest.play([reply("1"), silence, silence, reply("2"), reply("3")], interrupt)
    for _ in range(3):
        running.put(process := guest.start(*arguments))
        codes.append(finished(process).code)
    assert codes == [130, 130, 0]
    assert guest.asked == ["same", "other", "other", "other", "same"]
    assert guest.ends == ["ok", "cancelled", "cancelled", "ok", "ok"]
