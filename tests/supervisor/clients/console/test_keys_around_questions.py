"""Every key at every instant around every kind of question: what is approved was read, and meant."""

from typing import Any, Final, NamedTuple, get_args

import pytest

from supervisor.acp import extensions
from supervisor.clients.console.answer_guard import BURST_S, QUIET_S, READABLE_S, TYPIST_S
from tests.supervisor.clients.console.typist import HIDDEN, LONG_ONE, LONG_TEXT, LOST, PLAIN, PROTECTED, TRACKED, Typist

STEP: Final = 0.02
AGES: Final = 9.0
"""Seconds after which nothing is pending any more."""


class Kind(NamedTuple):
    """A kind of question: how it is asked, the keys that lead to it, and the keys that approve it."""

    asked: dict[str, Any]
    yes: str
    """What is a yes: "Ey", Enter and y, or "y" where Enter alone is none."""
    keys: tuple[str, ...] = ()


EFFECTS: Final = {"stage": "effects"}
RULE: Final = {**EFFECTS, "effects": PLAIN, "covers": "RULE"}
REAL: Final = {**EFFECTS, "effects": PLAIN, "escalation": True}
KINDS: Final[dict[str, Kind]] = {
    "a command": Kind({}, "Ey"),
    "a file tool": Kind({"tool": "write_file", "kind": "edit"}, "Ey"),
    "an address": Kind({"tool": "fetch_url", "kind": "fetch"}, "y"),
    "a text that the box does not hold": Kind({**LONG_TEXT}, "y"),
    "changes": Kind({**EFFECTS, "effects": PLAIN}, "Ey"),
    "changes of a file tool": Kind({**EFFECTS, "effects": PLAIN, "tool": "edit_file", "kind": "edit"}, "Ey"),
    "changes to protected names": Kind({**EFFECTS, "effects": PROTECTED}, "y"),
    "deletions of what git tracks": Kind({**EFFECTS, "effects": TRACKED}, "y"),
    "changes that cannot be seen": Kind({**EFFECTS, "effects": HIDDEN}, "y"),
    "changes that cannot be undone": Kind({**EFFECTS, "effects": LOST}, "y"),
    "changes that were not shown yet": Kind({**LONG_ONE}, "y"),
    "a run on the root itself": Kind({"stage": "direct"}, "y"),
    "a network, an install": Kind({"stage": "network", "covers": "RULE", "editable": False}, "y"),
    "another model": Kind({"stage": "switch", "tool": "switch_model", "editable": False}, "y"),
    "a file that narrows": Kind({"stage": "narrow", "tool": "narrowing", "editable": False}, "y"),
    "a turn that goes on": Kind({"stage": "turn", "tool": "go_on", "editable": False}, "Ey"),
    "what was refused": Kind({"stage": "refused", "escalation": True, "editable": False}, "Ey"),
    "a rule for the session": Kind(RULE, "y", ("Alt-S",)),
    "a rule for always": Kind(RULE, "y", ("Alt-A",)),
    "a rule, offered with a network": Kind({"stage": "network", "covers": "RULE"}, "y", ("Alt-A",)),
    "the real system, once more": Kind(REAL, "y", ("Alt-U", "y")),
    "an edited run on the root itself": Kind(
        {"stage": "call", "tool": "fetch_url", "kind": "fetch"}, "y", ("Tab", "x", "Enter")
    ),
    "an edited change to protected names": Kind(
        {**EFFECTS, "effects": PROTECTED, "tool": "write_file", "kind": "edit"}, "y", ("Tab", "x", "Enter")
    ),
}
KEYS: Final = ("Enter", "y", "Y", "x", " ", "Escape", "Tab")


def at_the(kind: Kind, typist: Typist) -> None:
    """Let a question of a kind appear just now."""
    typist.ask(**kind.asked)
    for key in kind.keys:
        typist.rest(2.0)
        typist.press(key)
    typist.rest(BURST_S if kind.keys[-1:] == ("y",) else 0.0)


def is_yes(kind: Kind, key: str) -> bool:
    return ("E" if key == "Enter" else key.lower()) in kind.yes


def test_every_stage_of_a_question_is_among_the_kinds() -> None:
    assert {kind.asked.get("stage", "call") for kind in KINDS.values()} == {*get_args(extensions.Stage)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_keys_that_come_without_a_pause_approve_nothing(kind: Kind) -> None:
    for key in KEYS:
        for early in (1.0, 0.0, -0.5, -0.98):  # before the question, with it, and while it becomes readable
            typist = Typist()
            if early > 0 and not kind.keys:
                for _ in range(round(early / STEP)):
                    typist.press(key)
                    typist.rest(STEP)
            at_the(kind, typist)
            typist.rest(max(0.0, -early))
            for _ in range(round(3.0 / STEP)):
                typist.press(key)
                typist.rest(STEP)
            assert typist.approved == 0, (key, early)
            typist.rest(AGES)
            assert typist.approved == 0, (key, early)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_one_key_answers_where_the_question_could_be_read_for_a_second(kind: Kind) -> None:
    for key in KEYS:
        for step in (*range(3), *range(30, 56), 75):
            after = round(step * STEP, 2)
            typist = Typist()
            at_the(kind, typist)
            typist.rest(after)
            typist.press(key)
            typist.rest(AGES)
            assert typist.approved == (after >= READABLE_S and is_yes(kind, key)), (key, after)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_second_key_answers_after_a_pause(kind: Kind) -> None:
    for key in ("Enter", "y"):
        for step in range(1, 60):
            pause = round(step * STEP, 2)
            typist = Typist()
            at_the(kind, typist)
            typist.rest(0.5)
            typist.press("Enter")
            typist.rest(pause)
            typist.press(key)
            typist.rest(AGES)
            meant = 0.5 + pause >= READABLE_S and pause >= QUIET_S
            assert typist.approved == (meant and is_yes(kind, key)), (key, pause)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_question_has_no_key_while_a_line_is_begun(kind: Kind) -> None:
    if kind.keys:
        return
    typist = Typist()
    typist.press("h")
    at_the(kind, typist)
    for key in ("Enter", "y"):
        typist.text = "h"
        for _ in range(round(5.0 / STEP)):
            typist.rest(STEP)
            typist.queue.line_changed()
        typist.press(key)
        typist.text = "h"
        typist.rest(AGES)
        assert (typist.mode, typist.approved) == ("line", 0), key


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_question_right_after_another_has_a_second_of_its_own(kind: Kind) -> None:
    for step in range(3, 64):
        pause = round(step * STEP, 2)
        typist = Typist()
        typist.ask("first")
        at_the(kind._replace(keys=()), typist)
        typist.rest(1.0)
        typist.press("Enter")
        typist.rest(pause)
        typist.press("y")
        typist.rest(AGES)
        later = [number for number, _ in typist.answers if number != 1]
        assert typist.answers[0][0] == 1
        assert bool(later) == (pause >= BURST_S + READABLE_S), pause


def test_an_answer_to_a_question_that_was_replaced_is_none_to_the_next() -> None:
    for key in ("Enter", "y"):
        for early in (BURST_S / 2, 0.0, -BURST_S / 2, -0.5):  # the key, before and after another question is there
            typist = Typist()
            gone = typist.ask("rm old", stage="effects", effects=PLAIN)
            typist.rest(2.0)
            if early >= 0:
                typist.press(key)
                typist.rest(early)
            typist.queue.withdraw_approval(gone)
            typist.ask("rm new", stage="effects", effects=PLAIN)
            typist.rest(max(0.0, -early))
            if early < 0:
                typist.press(key)
            typist.rest(AGES)
            assert typist.answers == [], (key, early)
            typist.press("y")
            typist.rest(AGES)
            assert [number for number, _ in typist.answers] == [2], (key, early)


def test_keys_that_waited_for_a_busy_console_count_as_old() -> None:
    for key, late in (("Enter", False), ("y", False), ("Enter", True), ("y", True)):
        typist = Typist()
        typist.ask()
        typist.rest(0.3)
        typist.stall(2.0)  # in which it was pressed
        if late:
            typist.rest(0.0)  # other work that was due comes before it
        typist.press(key)
        typist.rest(AGES)
        assert typist.answers == [], key
        typist.stall(0.2)
        typist.press(key)
        typist.rest(AGES)
        assert typist.approved == 1, key


def test_what_was_not_drawn_is_not_readable() -> None:
    typist = Typist()
    typist.seen = False
    typist.ask()
    typist.rest(5.0)
    assert "too few rows" in typist.queue.hint(80)
    typist.press("Enter")
    typist.press("y")
    typist.rest(TYPIST_S)
    typist.text, typist.seen = "", True
    typist.queue.read_anew()  # as at a change of the terminal's size
    typist.queue.line_changed()
    typist.rest(0.98)
    typist.press("Enter")
    typist.rest(AGES)
    assert typist.approved == 0
    typist.press("Enter")
    typist.rest(AGES)
    assert typist.approved == 1


def test_what_is_drawn_on_another_screen_is_to_be_read_anew() -> None:
    typist = Typist()
    typist.ask()
    typist.rest(5.0)
    typist.queue.read_anew()
    typist.rest(0.98)
    typist.press("Enter")
    typist.rest(0.72)
    assert typist.approved == 0
    typist.press("Enter")
    typist.rest(AGES)
    assert typist.approved == 1
