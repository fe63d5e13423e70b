"""Arguments of a call, to be read."""

from typing import Final

from supervisor.display.argument_text import argument_text
from tests.each_row import each_row

READ: Final = {
    '{"path": "a.md", "content": "\\u6f22\\n# b\\n"}': "path: a.md\ncontent:\n  漢\n  # b",
    '{"n": 10, "text": "10", "many": [1, "x"], "none": ""}': 'n: 10\ntext: "10"\nmany: [1, "x"]\nnone: ""',
    f'{{"many": [{"1," * 50}2]}}': "many: [" + "\n    1," * 50 + "\n    2\n  ]",
    '{"far": 1e999, "long": 123456789012345678901234567890.50}': "far: 1e999\nlong: 123456789012345678901234567890.50",
    '{"a": "\\u001b[2J\\u202e"}': "a: \\x1b[2J\\u202e",
    '{"a\\nb": "x"}': "a\\nb: x",
    '{"a": 1, "a": 2}': '{"a": 1, "a": 2}',
    "[1]": "[1]",
    "no JSON\x1b": "no JSON\\x1b",
    "": "",
}


@each_row("arguments", READ)
def test_arguments_are_shown_as_their_types_say(arguments: str) -> None:
    assert argument_text(arguments) == READ[arguments]
