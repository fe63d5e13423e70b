"""Text in the columns of a terminal: never wider than asked for, and broken between words."""

from typing import Final

from supervisor.display.columns import cut, table, width, wrapped
from tests.each_row import each_row

WRAPPED: Final = [
    ("one two three four", 10, "", ["one two", "three four"]),
    ("one two three", 10, "  ", ["  one two", "  three"]),
    ("日本語 日本語", 10, "", ["日本語", "日本語"]),
    ("an-unbroken-word-and more", 10, "", ["an-unbroke", "n-word-and", "more"]),
    ("日本語日本語", 9, "", ["日本語日", "本語"]),
    ("  indented text here", 12, "", ["  indented", "text here"]),
    ("e\u0301" * 8, 8, "", ["e\u0301" * 8]),
    ("a\tb", 20, "", ["a   b"]),
    (
        "wide indentation",
        8,
        " " * 9,
        [" " * 9 + letter for letter in "wide"] + [" " * 9 + letter for letter in "indentation"],
    ),
    ("", 10, "> ", ["> "]),
]


@each_row(("text", "columns", "first", "lines"), WRAPPED)
def test_a_line_is_broken_between_words(text: str, columns: int, first: str, lines: list[str]) -> None:
    assert wrapped(text, columns, first) == lines


CUT: Final = [
    ("short", 8, "short"),
    ("日本語日本語", 8, "日本..."),
    ("a\nb\x1b", 20, "a b\\x1b"),
    ("abc", 2, ".."),
    ("", 0, ""),
]


@each_row(("text", "columns", "shown"), CUT)
def test_a_text_is_cut_where_its_columns_end(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown


ROWS: Final = [("/model [NAME]", "the models there are, or take another"), ("/日本", "wide")]


def test_the_last_cell_of_a_row_is_broken_beside_the_others_or_below() -> None:
    assert table(ROWS, 36).split("\n") == [
        "/model [NAME]  the models there are,",
        "               or take another",
        "/日本          wide",
    ]
    assert table(ROWS, 24).split("\n") == [
        "/model [NAME]",
        "    the models there",
        "    are, or take another",
        "/日本",
        "    wide",
    ]


@each_row("columns", range(8, 60))
def test_nothing_is_ever_wider(columns: int) -> None:
    lines = [*table(ROWS, columns).split("\n"), *wrapped("日本 " * 9 + "x" * 70, columns, "> ", "  ")]
    assert max(map(width, lines)) <= columns
