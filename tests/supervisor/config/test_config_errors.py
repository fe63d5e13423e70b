"""Words for a wrong value: its key, what was given, and what it must be."""

import math
from datetime import date
from typing import Annotated, Any, Final, Literal

import msgspec
import pytest

from supervisor.config.config_errors import problem_in, shown


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A section's table."""

    megabytes: Annotated[int, msgspec.Meta(ge=64, le=1024)] = 64
    names: tuple[str, ...] = ()
    way: Literal["in", "out"] = "in"

    def __post_init__(self) -> None:
        if self.names == ("a", "a"):
            raise ValueError("a name stands there twice")


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file."""

    limits: dict[str, Inner] = {}
    colour: bool | None = None
    often: Annotated[int, msgspec.Meta(ge=1)] | None = None
    currency: Annotated[str, msgspec.Meta(min_length=1, max_length=8)] = ""
    who: str = "me"


WRONG: Final[list[tuple[dict[str, Any], str]]] = [
    ({"limits": {"web": {"megabytes": 8}}}, "`limits.web.megabytes` is 8; it must be a whole number from 64 to 1024."),
    ({"limits": {"web": {"megabyte": 8}}}, "`limits.web`: unknown name 'megabyte'; did you mean 'megabytes'?"),
    ({"limits": {"web": {"names": ["a", 2]}}}, "number 2 of `limits.web.names` is 2; it must be a text."),
    ({"limits": {"web": {"names": ["a", "a"]}}}, "`limits.web`: a name stands there twice"),
    ({"limits": {"web": {"way": "inn"}}}, "`limits.web.way` is 'inn'; did you mean 'in'?"),
    ({"limits": {"web": {"way": "up"}}}, "`limits.web.way` is 'up'; it must be one of in, out."),
    ({"limits": {"web": 5}}, "`limits.web` is 5; it must be a table with megabytes, names, way."),
    ({"limits": []}, "`limits` is []; it must be a table."),
    ({"colour": "yes"}, "`colour` is 'yes'; it must be true or false."),
    ({"often": 0}, "`often` is 0; it must be a whole number, 1 or more."),
    ({"currency": ""}, "`currency` is ''; it must be a text of 1 to 8 characters."),
    ({"who": 1}, "`who` is 1; it must be a text."),
    ({"where": 1}, "unknown name 'where'; did you mean 'who'?"),
    ({"zzz": 1}, "unknown name 'zzz'; known: limits, colour, often, currency, who."),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[row[1].partition(";")[0] for row in WRONG])
def test_a_problem_names_the_key_the_value_and_what_it_must_be(given: dict[str, Any], said: str) -> None:
    assert problem_in(given, Outer) == said


def test_there_is_no_problem_in_what_is_wanted() -> None:
    assert problem_in({"limits": {"web": {"names": ["a"], "way": "out"}}, "colour": None, "often": 2}, Outer) == ""


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
