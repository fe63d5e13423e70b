"""Values in words; the sentences about wrong ones are rows of `test_settings.py` and `test_fault_plan.py`."""

import math
from datetime import date
from typing import Any, Final

import pytest

from supervisor.config.config_errors import shown

SHOWN: Final[list[tuple[Any, str]]] = [
    ("a\x1b\n", r"'a\x1b\n'"),
    (None, "null"),
    (True, "true"),
    (math.inf, "inf"),
    (-7, "-7"),
    (16**5000, f"0x1{'0' * 74}..."),
    ({"a": [1, "\u202e"]}, r'{"a": [1, "\u202e"]}'),
    ([16**5000], "a list"),
    (date(1979, 5, 27), "1979-05-27"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[row[1][:20] for row in SHOWN])
def test_a_value_is_shown_as_it_was_written_cut_and_harmless(value: Any, text: str) -> None:
    assert shown(value) == text
