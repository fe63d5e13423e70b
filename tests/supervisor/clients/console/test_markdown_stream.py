"""Markdown as it comes: however it is cut, it looks as if rendered at once, and nothing of it acts or hides."""

import random
import re
from typing import Final

import pytest

from supervisor.clients.console.markdown_display import RichMarkdown
from supervisor.clients.console.markdown_stream import Stream

TEXTS: Final = {
    "paragraphs": "One\ntwo.\n\nThree.\n\n\n\nFour.",
    "headings": "# A\n## B\n\nText\n===\nMore\n---\n\nEnd",
    "lists": "- a\n- b\n\n  more\n- c\n\n1. one\n2. two\n   - deep\n\nText\n* x\n+ y",
    "numbers": "3. three\n\n\n4. four\n\ntext\n\n7) seven",
    "code": "Text\n```python\nx = 1\n\n\n# not a heading\n- not a list\n```\nAfter\n\n    indented\n\n    code\n\nEnd",
    "unclosed code": "```\nnever\n\nends",
    "long fence": "````md\n```\ninner\n```\n````\nAfter",
    "table": "Before\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| `x` | **y** |\n\nAfter",
    "quote": "> one\n> two\nlazy\n\n> three\n\nEnd",
    "rules": "a\n\n---\n\nb\n***\nc",
    "html": "<div>\nkept\n</div>\n\nA List<String> here <b>too</b>\n\n<!-- note -->\n",
    "definitions": "[a]: http://example.org\n\nSee [a].\n\n[b]: http://x 'title'\nlast [b]",
    "controls": "a\x1b[31mb\r\nc\x0bd\x85e\u2028f\n\n&#27;[1m &#x202e;g\n\n[x](http://h/%1b)",
    "nothing": "\n\n  \n",
}
WIDTH: Final = 50


def whole(text: str, *, colour: bool = False) -> str:
    stream = Stream(RichMarkdown(colour=colour))
    stream.feed(text)
    return stream.end_answer(WIDTH)


def without_styles(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("longest", [1, 7, 40])
def test_pieces_look_like_the_whole(text: str, longest: int) -> None:
    choice = random.Random(longest)
    stream = Stream(RichMarkdown(colour=False))
    out, at = "", 0
    while at < len(text):
        size = choice.randint(1, longest)
        stream.feed(text[at : at + size])
        at += size
        out += stream.finished(WIDTH)
        assert stream.text == text[: stream._done] + stream.tail
    assert out + stream.end_answer(WIDTH) == whole(text)
    assert stream.tail == ""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_line_is_wider_than_the_terminal(text: str) -> None:
    assert all(len(line) <= WIDTH for line in without_styles(whole(text)).split("\n"))


LOOKS = [
    ("headings", "A\n\nB\n\nText\n\nMore\n\nEnd"),
    ("lists", " • a\n • b\n   more\n • c\n\n 1 one\n 2 two\n    • deep\n\nText\n\n • x\n\n • y"),
    ("table", "Before\n\n a  b\n ────\n 1  2\n x  y\n\nAfter"),
    ("html", "  <div>\n  kept\n  </div>\n\nA List<String> here <b>too</b>\n\n  <!-- note -->"),
    ("definitions", "[a]: http://example.org\n\nSee [a].\n\n[b]: http://x 'title'\n\nlast [b]"),
]


@pytest.mark.parametrize(("name", "look"), LOOKS, ids=[row[0] for row in LOOKS])
def test_it_looks_so(name: str, look: str) -> None:
    assert without_styles(whole(TEXTS[name])) == f"{look}\n"


def test_code_has_colours_and_without_them_none() -> None:
    assert "\x1b[94" in whole(TEXTS["code"] + "\n```python\ndef f(): pass\n```", colour=True)
    assert "\x1b[9" not in whole(TEXTS["code"] + "\n```python\ndef f(): pass\n```")


def test_nothing_acts_on_the_terminal() -> None:
    shown = whole(TEXTS["controls"])
    assert "\x1b" not in without_styles(shown)
    assert not set("\x0b\r\x85\u2028\u202e") & set(shown)
    assert "\\x1b[31m" in shown


def test_finished_blocks_stay_when_the_rest_comes_again() -> None:
    stream = Stream(RichMarkdown(colour=False))
    stream.feed("One.\n\nTw")
    assert stream.finished(WIDTH) == "One.\n"
    assert stream.drop_unfinished() == len("One.\n\n")
    stream.feed("Two.")
    assert stream.end_answer(WIDTH) == "\nTwo.\n"


@pytest.mark.parametrize("language", ["python", "", "nonsense"])
def test_code_that_is_too_wide_is_broken_and_never_cut(language: str) -> None:
    code = "print('one', 'two', 'three', 'four', 'five')"
    shown = RichMarkdown(colour=False).terminal_text(f"```{language}\n{code}\n```\n", 20)
    assert max(len(line) for line in shown.split("\n")) <= 20
    assert "".join(shown.split()) == "".join(code.split())


def test_a_picture_shows_its_address() -> None:
    shown = without_styles(whole("See ![the plan](https://evil.example/?q=1) and [![x](b.png)](https://c.example).\n"))
    assert "![the plan](https://evil.example/?q=1)" in shown
    assert "![x](b.png) (https://c.example)" in shown
    titled = without_styles(whole("![a](b.png 'one') and [c](https://d.example 'two').\n"))
    assert '![a](b.png "one") and c (https://d.example "two").' in titled
    address = f"https://evil.example/?q={'1' * 200}end"
    for cell in (address, f"![x]({address})", f"[x]({address})"):
        rows = without_styles(whole(f"|a|b|\n|-|-|\n|{cell}|d|\n")).split()
        assert address in "".join(row for row in rows if row != "d")
