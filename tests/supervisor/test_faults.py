"""Fault plans: what is refused with which words, and which calls have which fault."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.errors import ConfigError
from supervisor.faults import Faults, Plan, read_plan
from workers.faults.acts import ACTS
from workers.faults.answers import ANSWERS
from workers.faults.kinds import FAULTS, MOMENTS

READ: Final = {"category": "files", "tool": "read_file", "fault": "exit"}


def written(folder: Path, *entries: dict[str, Any], **more: Any) -> Plan:
    file = folder / "plan.json"
    file.write_text(json.dumps({"faults": entries, **more}))
    return read_plan(file)


def test_a_plan_is_toml_or_json(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('seed = 7\n[[faults]]\ncategory = "files"\ntool = "read_file"\nfault = "exit"\n')
    one, other = read_plan(file), written(tmp_path, READ, seed=7)
    assert one.entries == other.entries
    assert (one.seed, str(one)) == (7, f"{file} (1 fault, seed 7)")


REFUSED: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("an unknown key", {"tol": "read_file"}, "unknown name 'tol'; did you mean 'tool'?"),
    ("an unknown fault", {"fault": "sigkil"}, "unknown fault 'sigkil'; did you mean 'sigkill'?"),
    ("an unknown category", {"category": "file"}, "unknown category 'file'; did you mean 'files'?"),
    ("an unknown moment", {"at": "commited"}, "unknown at 'commited'; did you mean 'committed'?"),
    ("another category's tool", {"tool": "find_files"}, "unknown tool of files 'find_files'; did you mean"),
    ("nothing near", {"fault": "q"}, "unknown fault 'q'; known: exit, sigkill,"),
    ("no fault", {"fault": None}, "Expected `str`, got `null`"),
    ("a number that is none", {"call": 0}, "Expected `int` >= 1"),
    ("a chance above 1", {"chance": 1.5}, "Expected `float` <= 1.0"),
    ("two ways to count", {"call": 1, "every": 2}, "use one of `call`, `every` and `chance`"),
    ("a moment that it cannot have", {"fault": "error_10mb", "at": "decided"}, "error_10mb cannot happen at 'decided'"),
    ("a tool at a start", {"at": "start"}, "a worker starts for all its tools; leave out `tool`, or `at`"),
]


@pytest.mark.parametrize(("change", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_wrong_entry_is_named_with_its_file_and_number(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        written(tmp_path, READ, READ | change)
    assert f"{tmp_path}/plan.json: number 2 of [[faults]]: {said}" in str(refused.value)


BROKEN: Final = [
    ("no TOML", "plan.toml", "[[faults]", "cannot be read"),
    ("no JSON", "plan.json", "{", "cannot be read"),
    ("no UTF-8", "plan.toml", "\udcff", "cannot be read"),
    ("brackets without end", "plan.json", "[" * 100_000, "cannot be read"),
    ("a list", "plan.json", "[]", "an object with `seed` and `faults`, not list"),
    ("another key", "plan.json", '{"faults": [], "sed": 1}', "unknown name 'sed'; did you mean 'seed'?"),
    ("no entry", "plan.json", '{"faults": []}', "there is no fault in it"),
    ("a text for a list", "plan.json", '{"faults": "exit"}', "Expected `array`"),
    ("a text for an entry", "plan.json", '{"faults": ["exit"]}', "Expected `object`"),
    ("far too much", "plan.toml", "#" * 2**21, "is larger than"),
]


@pytest.mark.parametrize(("name", "text", "said"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_what_is_no_plan_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as refused:
        read_plan(tmp_path / name)
    assert str(tmp_path / name) in str(refused.value)
    assert said in str(refused.value)


def test_a_plan_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")


COUNTS: Final[list[tuple[str, list[dict[str, Any]], list[str]]]] = [
    ("each call", [READ], ["exit"] * 6),
    ("the third one", [READ | {"call": 3}], ["", "", "exit", "", "", ""]),
    ("every second one", [READ | {"every": 2}], ["", "exit", "", "exit", "", "exit"]),
    ("so many times", [READ | {"every": 2, "times": 2}], ["", "exit", "", "exit", "", ""]),
    ("the first that fits", [READ | {"call": 2}, READ | {"fault": "hang"}], ["hang", "exit", *["hang"] * 4]),
    ("every tool", [{"category": "files", "fault": "spin", "times": 1}], ["spin", *[""] * 5]),
    ("another tool", [READ | {"tool": "write_file"}], [""] * 6),
    ("another category", [{"category": "search", "fault": "exit"}], [""] * 6),
    ("starts", [{"category": "files", "fault": "exit", "at": "start"}], [""] * 6),
]


@pytest.mark.parametrize(("entries", "expected"), [row[1:] for row in COUNTS], ids=[row[0] for row in COUNTS])
def test_the_calls_that_a_plan_means_have_its_faults(
    tmp_path: Path, entries: list[dict[str, Any]], expected: list[str]
) -> None:
    faults = Faults(written(tmp_path, *entries))
    found = [faults.of_call("files", "read_file") for _ in expected]
    assert [fault.name if fault else "" for fault in found] == expected
    assert sum(faults.happened.values()) == sum(map(bool, expected))


def test_starts_are_counted_apart(tmp_path: Path) -> None:
    faults = Faults(written(tmp_path, {"category": "files", "fault": "hang", "at": "start", "call": 2}))
    faults.of_call("files", "read_file")
    assert [faults.of_start("files"), faults.of_start("search")] == [None, None]
    fault = faults.of_start("files")
    assert fault is not None
    assert (fault.name, fault.at) == ("hang", "start")


def test_the_seed_says_which_calls_have_a_fault_by_chance(tmp_path: Path) -> None:
    def drawn(seed: int) -> list[bool]:
        faults = Faults(written(tmp_path, READ | {"chance": 0.25}, seed=seed))
        return [faults.of_call("files", "read_file") is not None for _ in range(400)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert 60 < sum(drawn(1)) < 140


def test_every_fault_is_done_by_one_function_at_moments_that_exist() -> None:
    assert sorted([*ACTS, *ANSWERS]) == sorted(FAULTS)
    assert {moment for kind in FAULTS.values() for moment in kind.moments} == set(MOMENTS)
