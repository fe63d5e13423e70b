"""No byte of a model, a file or a tool reaches a terminal unescaped."""

import json
import sys
import unicodedata
from typing import Final

import pytest

from supervisor.render import document, one_line, visible

TEXTS: Final = [
    ("plain", "plain"),
    ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ("\x1b[31mred", "\\x1b[31mred"),
    ("\x9b31m", "\\x9b31m"),
    ("back\b\rover\x7f", "back\\x08\\rover\\x7f"),
    ("\u202etxt.exe", "\\u202etxt.exe"),
    ("a\u2028b", "a\\u2028b"),
    ("\ufeffx", "\\ufeffx"),
    ("\U000e0041", "\\U000e0041"),
    ("half \ud800", "half \\ud800"),
    ("\ue000", "\\ue000"),
    ("é日😀", "é日😀"),
    ("👩\u200d🚒 ❤\ufe0f x\u200cy", "👩\u200d🚒 ❤\ufe0f x\u200cy"),
]


@pytest.mark.parametrize(("text", "seen"), TEXTS, ids=[ascii(text)[:20] for text, _ in TEXTS])
def test_text_is_seen_as(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_nothing_that_a_terminal_acts_on_is_left_of_any_character() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    left = {char for char in visible(every) if unicodedata.category(char)[0] == "C" or char in "\u2028\u2029"}
    assert {char for char in left if unicodedata.category(char) != "Cn"} == {"\n", "\t", "\u200c", "\u200d"}


LINES: Final = [
    ("short", 10, "short"),
    ("exactly 10", 10, "exactly 10"),
    ("a bit too long", 10, "a bit t..."),
    ("two\n  lines", 20, "two lines"),
    ("\x1b[2J", 20, "\\x1b[2J"),
    ("", 5, ""),
]


@pytest.mark.parametrize(("text", "width", "seen"), LINES)
def test_a_line_is_one_line_of_a_width(text: str, width: int, seen: str) -> None:
    assert one_line(text, width) == seen


@pytest.mark.parametrize("text", [text for text, _ in TEXTS if "\ud800" not in text])
def test_a_document_means_the_same(text: str) -> None:
    assert json.loads(document({"key": [text]})) == {"key": [text]}


def test_a_document_shows_no_control_characters() -> None:
    shown = document("\x1b \x7f \x9b \u202e \U000e0041 é")
    assert shown == '"\\u001b \\u007f \\u009b \\u202e \\udb40\\udc41 é"'
