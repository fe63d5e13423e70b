"""The line of each key, whatever stands between them."""

from typing import Final

import pytest

from supervisor.config.key_lines import KeyPath, key_lines, line_of

TEXT: Final = '''\
# a comment = 1
model = "x"
allow_degraded = [
  "a",  # [not] = a table

  "b",
]

[web]
allow = ["example.org"]  # where = 1
[limits.files]
call_s = 1
text = """
[no.table]
key = 1
"""
[[rules]]
decision = "ask"
[[rules]]
decision = 'deny'
[models."claude-a.b"]
prices = { input = 1.0, output = 2.0 }
budgets.turn.tokens = 5
'''
LINES: Final[dict[KeyPath, int | None]] = {
    ("model",): 2,
    ("allow_degraded",): 3,
    ("web", "allow"): 10,
    ("limits", "files", "call_s"): 12,
    ("limits", "files", "text"): 13,
    ("limits", "files", "missing"): 11,
    ("rules", 1, "decision"): 18,
    ("rules", 2): 19,
    ("rules", 2, "decision"): 20,
    ("rules",): 17,
    ("models", "claude-a.b", "prices", "output"): 22,
    ("models", "claude-a.b", "budgets", "turn", "tokens"): 23,
    ("no",): None,
    ("key",): None,
    ("where",): None,
}


@pytest.mark.parametrize(("path", "line"), LINES.items())
def test_a_key_is_found_at_its_line(path: KeyPath, line: int | None) -> None:
    assert line_of(key_lines(TEXT), path) == line
