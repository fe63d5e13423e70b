"""Answers that are meant, and those that are not: keys with a clock of their own."""

import random
from typing import Any, Final

import pytest

from tests.supervisor.clients.console.typist import HIDDEN, LONG_ONE, LONG_TEXT, PLAIN, PROTECTED, Typist

YES: Final[list[tuple[str, dict[str, Any], list[str | float], int]]] = [
    ("enter at once", {}, ["Enter", 2.0], 0),
    ("enter in time", {}, [1.0, "Enter", 0.1], 1),
    ("enter too early, again too soon", {}, [0.9, "Enter", 0.6, "Enter", 0.1], 0),
    ("enter too early, again in time", {}, [0.9, "Enter", 0.7, "Enter", 0.1], 1),
    ("enter alone, protected", {"stage": "effects", "effects": PROTECTED}, [2.0, "Enter", 2.0, "Enter", 9.0], 0),
    ("y, protected", {"stage": "effects", "effects": PROTECTED}, [1.0, "y", 0.1], 1),
    ("enter, then y, protected", {"stage": "effects", "effects": PROTECTED}, [1.0, "Enter", 0.7, "y", 0.1], 1),
    ("enter alone, unseen", {"stage": "effects", "effects": HIDDEN}, [2.0, "Enter", 2.0], 0),
    ("enter alone, network", {"stage": "network"}, [2.0, "Enter", 2.0], 0),
    ("enter alone, the root itself", {"stage": "direct"}, [2.0, "Enter", 2.0], 0),
    ("y, the root itself, too early, again", {"stage": "direct"}, [0.5, "y", 1.0, "y", 0.1], 1),
    ("a word at once, the root itself", {"stage": "direct"}, [2.0, "y", 0.0, "e", 0.0, "s", 9.0], 0),
    ("y, plain effects", {"stage": "effects", "effects": PLAIN}, [1.0, "y", 0.1], 1),
    ("a word before it can be read", {}, [0.5, "y", 0.2, "o", 0.2, "Enter", 9.0], 0),
    ("enter, plain effects", {"stage": "effects", "effects": PLAIN}, [1.0, "Enter", 0.1], 1),
    ("enter, before the last page", LONG_ONE, [1.0, "PgDn", 1.0, "Enter", 2.0], 0),
    ("enter, after all pages", LONG_ONE, [1.0, "PgDn", 1.0, "PgDn", 1.0, "PgDn", 1.0, "Enter", 0.1], 1),
    ("enter, all at once", LONG_ONE, [1.0, "Ctrl-O", 1.0, "Enter", 0.1], 1),
    ("enter, right after the last page", LONG_ONE, [1.0, "Ctrl-O", 0.8, "Enter", 2.0], 0),
    ("y, before the last page", LONG_ONE, [1.0, "y", 0.1], 1),
    ("enter, a text that the box cannot show", LONG_TEXT, [1.0, "Enter", 9.0], 0),
    ("enter, when it was read", LONG_TEXT, [1.0, "Ctrl-O", 1.0, "Enter", 0.1], 1),
    ("y, a text that the box cannot show", LONG_TEXT, [1.0, "y", 0.1], 1),
    ("enter, after it has run", {**LONG_TEXT, "stage": "refused"}, [1.0, "Enter", 0.1], 1),
    ("a rule at once", {"covers": "RULE"}, ["Alt-A", "y", 0.9, "y", 0.1], 0),
    ("a rule in time", {"covers": "RULE"}, [1.0, "Alt-A", 1.0, "y", 0.1], 1),
]


@pytest.mark.parametrize(("offered", "keys", "approved"), [row[1:] for row in YES], ids=[row[0] for row in YES])
def test_a_key_answers_when_it_is_meant(offered: dict[str, Any], keys: list[str | float], approved: int) -> None:
    typist = Typist()
    typist.ask(**offered)
    for key in keys:
        if isinstance(key, float):
            typist.rest(key)
        else:
            typist.press(key)
    assert typist.approved == approved


def test_what_shall_run_on_the_real_system_is_shown_to_its_end_before_it_is_confirmed() -> None:
    typist = Typist()
    typist.ask(**LONG_TEXT, escalation=True)
    typist.rest(1.0)
    assert "rm x" not in repr(typist.shown)
    typist.press("Alt-U")
    assert (typist.mode, "rm x" in repr(typist.shown)) == ("confirm", True)


def test_a_line_keeps_the_keys_until_it_is_sent_or_cleared() -> None:
    typist = Typist()
    typist.press("h")
    typist.ask()
    typist.rest(60)
    assert typist.mode == "line"
    typist.press("Enter")
    assert typist.sent == ["h"]
    typist.rest(0.6)
    assert typist.mode == "line"
    typist.rest(0.1)
    assert typist.mode == "review"
    typist.press("y")
    typist.press("o")
    assert (typist.mode, typist.text) == ("line", "yo")
    typist.text = ""
    typist.queue.line_changed()
    typist.rest(1.0)
    typist.press("Enter")
    typist.rest(0.1)
    assert typist.approved == 1


LINES: Final = ("yes please", "y", "also fix the tests", "you know", "no", "Yes, all", "x", "y y y")


def test_a_thousand_typists_make_no_accidental_yes() -> None:
    shapes: list[dict[str, Any]] = [
        {},
        {"stage": "direct"},
        {"stage": "network", "covers": "RULE"},
        {"stage": "effects", "effects": PROTECTED},
        {"stage": "effects", "effects": PLAIN, "editable": False},
    ]
    for seed in range(1000):
        chance = random.Random(seed)
        typist, typed = Typist(), ""
        lines = chance.sample(LINES, 3)
        keys = [key for line in lines for key in (*line, "Enter")]
        asks = {chance.randrange(len(keys)): chance.choice(shapes) for _ in range(3)}
        typist.press("Enter")  # of the line that began the turn
        for at, key in enumerate(keys):
            pause = chance.uniform(0.1, 3)
            early = chance.uniform(0, pause)
            typist.rest(early)
            if at in asks:
                typist.ask(**asks[at])
            typist.rest(pause - early)
            typist.press(key)
            typed += "" if key == "Enter" else key
        typist.rest(9)
        assert not typist.answers, (seed, keys)
        assert "".join([*typist.sent, typist.text]) == typed, seed
