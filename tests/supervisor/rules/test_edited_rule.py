"""An offered rule as a person edits it: paths and numbers alone, and only to what is a rule."""

import json
from typing import Any

import pytest

from supervisor.rules.edited_rule import editable, edited
from supervisor.rules.rule import Rule
from tests.each_row import each_row
from tests.supervisor.changes import TODAY

OFFERED = Rule("allow", ("npm",), ("node_modules/x/**",), (), 20, True, "", TODAY, ("content", "link"), 10**6)


def test_what_is_not_touched_stays() -> None:
    assert edited(OFFERED, editable(OFFERED)) == edited(OFFERED, "{}") == OFFERED
    assert json.loads(editable(OFFERED)).keys() == {"writes", "deletes", "max_files", "max_bytes"}
    made = edited(OFFERED, '{"writes": ["node_modules/", "package-lock.json"], "max_files": 5000}')
    assert (made.writes, made.max_files) == (("node_modules/", "package-lock.json"), 5000)
    assert (made.programs, made.kinds, made.max_bytes) == (OFFERED.programs, OFFERED.kinds, OFFERED.max_bytes)


@each_row(
    "text",
    ['{"programs": ["sh"]}', '{"kinds": ["special"]}', '{"writes": ["../x"]}', '{"writes": []}', '{"max_files": 0}',
     "x", '{"writes": "a"}', "[]", "[" * 5000, '{"writes": ["\\ud800"]}', '{"decision": "allow"}'],
)  # fmt: skip
def test_nothing_else_is_edited(text: str) -> None:
    with pytest.raises(ValueError, match="rule"):
        edited(OFFERED, text)


@pytest.mark.parametrize("offered", [{"registries": ("npm",)}, {"starts": True}])
@pytest.mark.parametrize("text", ['{"writes": ["**"]}', '{"deletes": ["**"]}'])
def test_a_rule_for_no_paths_gets_none(offered: dict[str, Any], text: str) -> None:
    rule = Rule("allow", ("npm",), until=TODAY, **offered)
    assert edited(rule, editable(rule)) == rule
    with pytest.raises(ValueError, match="rule"):
        edited(rule, text)
