"""A batch's input as data: what is an item, and what is refused; and the line of a result."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.clients.batch.items import CallLine, Item, Result, read_items
from supervisor.errors import ConfigError

ITEMS: Final[list[tuple[str, list[Item]]]] = [
    ("one\ntwo\n", [Item("1", "one"), Item("2", "two")]),
    ("one", [Item("1", "one")]),
    ("\n one \r\n\n\ntwo\u2028and\n", [Item("2", "one"), Item("5", "two\u2028and")]),
    ('{"id": "a", "prompt": "x"}\n{"id": 2, "prompts": ["y", "z"]}\n', [Item("a", "x"), Item(2, prompts=("y", "z"))]),
    ('{"id": "a", "prompt": "x", "profile": "p", "root": "r", "model": "m"}', [Item("a", "x", None, "p", "r", "m")]),
    ("a { line", [Item("1", "a { line")]),
    ("\ufeffone\n\ufefftwo", [Item("1", "one"), Item("2", "\ufefftwo")]),
    ('\ufeff{"id": "a", "prompt": "\ufeffx"}', [Item("a", "\ufeffx")]),
]


@pytest.mark.parametrize(("text", "items"), ITEMS, ids=[repr(text[:20]) for text, _ in ITEMS])
def test_an_input_becomes_items(tmp_path: Path, text: str, items: list[Item]) -> None:
    (tmp_path / "in").write_bytes(text.encode())
    assert read_items(str(tmp_path / "in")) == items


def test_the_schema_of_an_item_goes_before_that_of_all_also_where_it_says_nothing(tmp_path: Path) -> None:
    lines = ['{"id": 1, "prompt": "x", "schema": {}}', '{"id": 2, "prompt": "x"}']
    (tmp_path / "in").write_text("\n".join(lines))
    assert [item.schema for item in read_items(str(tmp_path / "in"), {"type": "null"})] == [{}, {"type": "null"}]


def test_an_item_has_its_turns() -> None:
    assert Item(1, "x").turns == ("x",)
    assert Item(1, prompts=("x", "y")).turns == ("x", "y")


BAD: Final[list[tuple[bytes, str]]] = [
    (b"", "holds no prompts"),
    (b" \n\t\n", "holds no prompts"),
    (b"\xff", "is not UTF-8"),
    (b'{"id": "a", "prompt": "x"}\nplain', "line 2: "),
    (b'{"prompt": "x"}', "line 1: Object missing required field `id`"),
    (b'{"id": "a"}', "an item has either a `prompt` or `prompts`"),
    (b'{"id": "a", "prompt": "x", "prompts": ["y"]}', "an item has either a `prompt` or `prompts`"),
    (b'{"id": "a", "prompt": " "}', "none is empty"),
    (b'{"id": "a", "prompts": ["x", ""]}', "none is empty"),
    (b'{"id": "a", "prompts": []}', "none is empty"),
    (b'{"id": 1.5, "prompt": "x"}', "Expected `int | str`"),
    (b'{"id": "a", "prompt": "x", "mode": "y"}', "unknown field `mode`"),
    (b'{"id": "1", "prompt": "x"}\n{"id": 1, "prompt": "y"}', "the id 1 occurs twice"),
    (b'{"id": "a", "prompt": "\\ud800"}', "line 1: "),
    (b'{"id": "a", "prompt": "x", "images": ["/none.png"]}', "line 1: '/none.png' is not PNG, JPEG, GIF, WebP or PDF"),
]


@pytest.mark.parametrize(("content", "words"), BAD, ids=[repr(content[:40]) for content, _ in BAD])
def test_an_input_that_is_none_is_refused_with_its_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "in").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_items(str(tmp_path / "in"))
    assert words in str(caught.value)
    assert str(tmp_path / "in") in str(caught.value)


def test_an_input_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for name in ("missing", "."):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_items(str(tmp_path / name))


# results --------------------------------------------------------------------------------------------------


def result(name: str | int, status: Any = "ok", **more: Any) -> Result:
    return Result(name, status, "yes", "s", 1, [CallLine("read_file", {"path": "a"}, True)], {"t": 1}, 0.5, **more)


def test_a_line_has_every_field() -> None:
    line = {"id": "a", "status": "ok", "answer": "yes", "session": "s", "steps": 1, "usage": {"t": 1}, "seconds": 0.5}
    call = {"tool": "read_file", "arguments": {"path": "a"}, "ok": True, "error_kind": None}
    error = {"kind": "x", "message": "y"}
    assert json.loads(result("a").line()) == {**line, "tool_calls": [call]}
    failed = json.loads(result("a", "error", error=error).line())
    assert failed == {**line, "tool_calls": [call], "status": "error", "error": error}
