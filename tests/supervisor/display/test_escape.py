"""No byte of a model, a file or a tool reaches a terminal unescaped."""

import json
import sys
import unicodedata
from typing import Final

import pytest

from supervisor.display.escape import document, is_padded, name, one_line, visible, written_out
from tests.each_row import each_row

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
    ("👩\u200d🚒 ❤\ufe0f 1\ufe0f\u20e3", "👩\u200d🚒 ❤\ufe0f 1\ufe0f\u20e3"),
    ("\u0645\u06cc\u200c\u062e\u0648 क्\u200dष", "\u0645\u06cc\u200c\u062e\u0648 क्\u200dष"),
    ("x\u200cy \u200d👩 ❤\ufe0f\ufe0f a\ufe0f", "x\\u200cy \\u200d👩 ❤\ufe0f\\ufe0f a\\ufe0f"),
    ("10\u00a0€ \u2800 \ufffc", "10\\xa0€ \\u2800 \\ufffc"),
    ("e\u0301 \u0301\u0302e", "e\u0301 \\u0301\\u0302e"),
    ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + "\\u0301" * 2),
]


@each_row(("text", "seen"), TEXTS, ids=[ascii(text)[:20] for text, _ in TEXTS])
def test_text_is_seen_as(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_nothing_that_a_terminal_acts_on_is_left_of_any_character() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    left = {char for char in visible(every) if unicodedata.category(char)[0] == "C" or char in "\u2028\u2029"}
    assert {char for char in left if unicodedata.category(char) != "Cn"} == {"\n", "\t"}
    assert not {char for char in visible(every) if unicodedata.category(char) == "Zs"} - {" "}


def test_prose_keeps_its_blanks_and_nothing_else_that_is_not_seen() -> None:
    assert visible("10\u00a0€\u3000\u3164\u200b", prose=True) == "10\u00a0€\u3000\\u3164\\u200b"


FILLERS: Final = "\u115f\u1160\u3164\uffa0"
IGNORED: Final = (
    *(0xAD, 0x34F, 0x61C, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F)),
    *(*range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4)),
    *(*range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
)
"""What Unicode says that a display leaves out, besides the fillers."""

NAMES: Final = [
    ("a b.txt", "a b.txt"),
    ("日本 é😀.txt", "日本 é😀.txt"),
    ("two\nlines\tand a tab", "two\\nlines\\tand a tab"),
    ("a\u200db\u200cc\ufe0f", "a\\u200db\\u200cc\\ufe0f"),
    ("a\u3164b", "a\\u3164b"),
    (f"ls{' ' * 300}-la", "ls [300 blanks] -la"),
    ("ls" + "\u3164 " * 10 + "-la", "ls [20 blanks] -la"),
    ("  \u200d  ", "\\x20 \\u200d \\x20"),
    ("a\u2215b\u00a0", "a\\u2215b\\xa0"),
    ("p\u0430ypal.py", "p\u0430ypal.py [mixes Latin and Cyrillic]"),
    ("src/\u0440\u0430\u0443.py", "src/\u0440\u0430\u0443.py [all Cyrillic]"),
    ("\u03bfauth", "\u03bfauth [mixes Latin and Greek]"),
    ("f\u0585o", "f\u0585o [mixes Latin and Armenian]"),
    ("\u13aaB", "\u13aaB [mixes Latin and Cherokee]"),
    ("\U0001d429\U0001d41a\U0001d432", "\U0001d429\U0001d41a\U0001d432 [all variant letters]"),
    ("\u0441\u043e\u0440\u04432", "\u0441\u043e\u0440\u04432 [all Cyrillic]"),
    ("l\u19d0gin", "l\u19d0gin [mixes Latin and New Tai Lue]"),
    ("\u217dlean \u0444\u0430\u0439\u043b2", "\u217dlean \u0444\u0430\u0439\u043b2 [mixes Latin and variant letters]"),
    ("\u0444\u0430\u0439\u043b2 \u0663\u0645 x\u00b2", "\u0444\u0430\u0439\u043b2 \u0663\u0645 x\u00b2"),
    ("g\u0131t", "g\u0131t [mixes Latin and phonetic letters]"),
    ("e\u0301t\u00e9.py", "e\u0301t\u00e9.py [letters in parts]"),
    ("\u00e9t\u00e9 \u304c \u0915\u093e.py", "\u00e9t\u00e9 \u304c \u0915\u093e.py"),
    (
        "docs/\u0437\u0430\u043c\u0435\u0442\u043a\u0438 caf\u00e9 app\u65e5\u672c.md",
        "docs/\u0437\u0430\u043c\u0435\u0442\u043a\u0438 caf\u00e9 app\u65e5\u672c.md",
    ),
]


@each_row(("text", "seen"), NAMES)
def test_a_name_is_seen_as(text: str, seen: str) -> None:
    assert name(text) == seen


def test_a_name_hides_nothing_that_a_display_leaves_out() -> None:
    unseen = [*map(chr, IGNORED), *FILLERS]
    assert [char for char in unseen if not name(char).isascii()] == []


@each_row("blank", [*" \t\n\u00a0\u3000\u2800", *FILLERS], ids=ascii)
def test_a_long_run_of_blanks_is_found(blank: str) -> None:
    assert is_padded(f"ls{blank * 17}-la")
    assert not is_padded(f"ls{blank * 16}-la")


@pytest.mark.parametrize("unseen", ["\u200d", "\ufe0f", "\u034f"], ids=ascii)
def test_a_character_without_width_neither_ends_a_run_of_blanks_nor_is_one(unseen: str) -> None:
    assert is_padded(f"ls{f'        {unseen}' * 3}-la")
    assert not is_padded(f"ls{unseen * 40}-la")


WRITTEN_OUT: Final = [
    ("ab\U000e0041\U000e007f", "ab\\U000E0041\\U000E007F", 2),
    ("😀\ufe0f\U000e0101x\ufe00", "😀\ufe0f\\U000E0101x\\U0000FE00", 2),
    ("one\u200b two\u00ad", "one\u200b two\u00ad", 0),
    ("\u200b\u200c" * 4, "\\U0000200B\\U0000200C" * 4, 8),
]


@pytest.mark.parametrize(("text", "seen", "count"), WRITTEN_OUT, ids=ascii)
def test_what_is_hidden_for_a_model_is_written_out_and_counted(text: str, seen: str, count: int) -> None:
    assert written_out(text) == (seen, count)
    assert json.loads(written_out(json.dumps(text, ensure_ascii=False), json=True)[0]) == seen


LINES: Final = [
    ("short", 10, "short"),
    ("exactly 10", 10, "exactly 10"),
    ("a bit too long", 10, "a bit t..."),
    ("two\n  lines", 20, "two lines"),
    ("\x1b[2J", 20, "\\x1b[2J"),
    ("", 5, ""),
]


@each_row(("text", "width", "seen"), LINES)
def test_a_line_is_one_line_of_a_width(text: str, width: int, seen: str) -> None:
    assert one_line(text, width) == seen


@each_row("text", [text for text, _ in TEXTS if "\ud800" not in text])
def test_a_document_means_the_same(text: str) -> None:
    assert json.loads(document({"key": [text]})) == {"key": [text]}


def test_a_document_shows_no_control_characters() -> None:
    shown = document("\x1b \x7f \x9b \u202e \U000e0041 é")
    assert shown == '"\\u001b \\u007f \\u009b \\u202e \\udb40\\udc41 é"'
