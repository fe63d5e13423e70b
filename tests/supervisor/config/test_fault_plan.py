"""Fault plans: what is refused with which words, and which calls have which fault."""

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.config.fault_plan import FaultEntry, FaultPlan, RunningFaultPlan, read_plan
from supervisor.errors import ConfigError
from workers.faults.injector import ANSWERS
from workers.faults.kinds import FAULTS, MOMENTS
from workers.faults.worker_faults import ACTS

REFERENCE: Final = Path(__file__).parents[3] / "scripts" / "faults.toml"
READ: Final = {"category": "files", "tool": "read_file", "fault": "exit"}


def written(folder: Path, *entries: dict[str, Any], **more: Any) -> FaultPlan:
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
    ("an unknown fault", {"fault": "sigkil"}, "is 'sigkil'; did you mean 'sigkill'?"),
    ("an unknown category", {"category": "file"}, "is 'file'; did you mean 'files'?"),
    ("an unknown moment", {"at": "commited"}, "`at` of number 2 of `faults` is 'commited'; did you mean 'committed'?"),
    ("a moment like no other", {"at": "q"}, "is 'q'; it must be one of answer, call, committed, decided,"),
    ("another category's tool", {"tool": "find_files"}, "unknown tool of files 'find_files'; did you mean"),
    ("nothing near", {"fault": "q"}, "`fault` of number 2 of `faults` is 'q'; it must be one of exit, sigkill,"),
    ("no fault", {"fault": None}, "`fault` of number 2 of `faults` is null; it must be one of exit, sigkill,"),
    ("no tool", {"tool": 5}, "is 5; it must be a text."),
    ("a number that is none", {"call": 0}, "is 0; it must be a whole number from 1 to 1000000000."),
    ("a text for a number", {"call": "three"}, "is 'three'; it must be a whole number from"),
    ("a chance above 1", {"chance": 1.5}, "is 1.5; it must be a number above 0 and up to 1."),
    ("a chance that is no number", {"chance": float("nan")}, "is nan; it must be a number above 0 and"),
    ("a long name", {"fault": "e" * 5000}, f"is '{'e' * 77}...'; it must be one of exit,"),
    ("a name for a terminal", {"\x1b[2J\u202e": 1}, "unknown name '\\x1b[2J\\u202e'; known: category,"),
    ("two ways to count", {"call": 1, "every": 2}, "use one of `call`, `every` and `chance`, not call = 1, every = 2."),
    (
        "a moment that it cannot have",
        {"fault": "frame_late", "at": "keep", "tool": "write_file"},
        "frame_late cannot happen at 'keep'; it can at: answer, committed.",
    ),
    (
        "a tool at a start",
        {"at": "start"},
        "a worker starts for all its tools, not for read_file alone; leave out `tool`, or `at`.",
    ),
    (
        "a commit of a tool that changes nothing",
        {"at": "committed"},
        "read_file changes nothing, so no call comes to 'committed'; exit can happen at: call, answer.",
    ),
    *(
        (
            f"{moment} of a category that changes nothing",
            {"category": "search", "tool": "", "at": moment},
            f"no tool of search changes anything, so no call comes to '{moment}'; exit can happen at: call, start,",
        )
        for moment in ("proposed", "keep", "decided", "committed")
    ),
]


@pytest.mark.parametrize(("change", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_wrong_entry_is_named_with_its_file_and_number(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        written(tmp_path, READ, READ | change)
    assert str(refused.value).startswith(f"{tmp_path}/plan.json: ")
    assert "number 2 of `faults`" in str(refused.value)
    assert said in str(refused.value)


ENTRY: Final = '[[faults]]\ncategory = "files"\nfault = "exit"\n'
TOML, JSON = "plan.toml", "plan.json"
BROKEN: Final = [
    ("no TOML", TOML, "[[faults]", "it is not valid TOML: Expected ']]' at the end of an array declaration (at line 1"),
    ("no JSON", JSON, '{"a"', "it is not valid JSON: Expecting ':' delimiter at line 1, column 5."),
    ("JSON in capitals", "PLAN.JSON", '{"a"', "it is not valid JSON"),
    ("no UTF-8", TOML, "\n#\udcff", "it is not UTF-8: line 2 has the byte 0xff."),
    ("a mark before it", JSON, "\ufeff{}", "it begins with a byte order mark; save it as UTF-8 without one."),
    ("brackets without end", JSON, "[" * 100_000, "it is nested too deep."),
    ("digits without end", TOML, f"seed = {'1' * 5000}", "a number in it has too many digits."),
    ("a list", JSON, "[]", "it is []; it must be a table with seed, faults."),
    ("another key", JSON, '{"faults": [], "sed": 1}', "unknown name 'sed'; did you mean 'seed'?"),
    ("a text for a seed", TOML, 'seed = "a"', "`seed` is 'a'; it must be a whole number from"),
    ("a seed without end", TOML, f"seed = 0x{'f' * 9000}", f"`seed` is 0x{'f' * 75}...; it must be"),
    ("no entry", JSON, '{"faults": []}', "it lists no faults"),
    ("nothing", JSON, "", "it lists no faults"),
    ("a text for a list", JSON, '{"faults": "exit"}', "`faults` is 'exit'; it must be a list of tables, each begun"),
    ("a table for a list", TOML, "[faults]\ncall = 1", "it must be a list of tables, each begun"),
    ("the second table", TOML, "[faults]\n[faults]", "it is not valid TOML: Cannot declare"),
    (
        "a text for an entry",
        JSON,
        '{"faults": ["exit"]}',
        "number 1 of `faults` is 'exit'; it must be a table with category,",
    ),
    (
        "no category",
        TOML,
        '[[faults]]\nfault = "exit"',
        "number 1 of `faults`: `category` is missing; it must be one of files, search, web,",
    ),
    ("two seeds", JSON, '{"seed": 1, "seed": 2}', "the name 'seed' stands twice in one object: leave"),
    (
        "two categories",
        JSON,
        '{"faults": [{"category": "web", "fault": "exit", "category": "files"}]}',
        "the name 'category' stands twice in one object",
    ),
    ("two faults", TOML, f'{ENTRY}fault = "hang"', "it is not valid TOML: Cannot overwrite a value"),
    ("far too much", TOML, "#" * 2**21, "it has more than"),
]


@pytest.mark.parametrize(("name", "text", "said"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as refused:
        read_plan(tmp_path / name)
    assert str(tmp_path / name) in str(refused.value)
    assert said in str(refused.value)


def test_a_plan_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")


def test_a_pipe_is_no_plan_even_where_one_comes_out_of_it(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, ENTRY.encode())
        os.close(writer)
        with pytest.raises(ConfigError, match="cannot be read: it is not a regular file"):
            read_plan(Path(f"/dev/fd/{reader}"))
    finally:
        os.close(reader)


def test_a_plan_s_name_is_shown_so_that_no_terminal_acts_on_it(tmp_path: Path) -> None:
    file = tmp_path / "\x1b[2J\udcff.toml"
    file.write_text(ENTRY)
    assert str(read_plan(file)) == f"{tmp_path}/\\x1b[2J\\udcff.toml (1 fault, seed 0)"
    file.write_text("seed")
    with pytest.raises(ConfigError, match=re.escape(f"{tmp_path}/\\x1b[2J\\udcff.toml cannot be read")):
        read_plan(file)


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
    faults = RunningFaultPlan(written(tmp_path, *entries))
    found = [faults.fault_of_call("files", "read_file") for _ in expected]
    assert [fault.name if fault else "" for fault in found] == expected
    assert sum(faults.happened.values()) == sum(map(bool, expected))


def test_starts_are_counted_apart(tmp_path: Path) -> None:
    faults = RunningFaultPlan(written(tmp_path, {"category": "files", "fault": "hang", "at": "start", "call": 2}))
    faults.fault_of_call("files", "read_file")
    assert [faults.fault_of_start("files"), faults.fault_of_start("search")] == [None, None]
    fault = faults.fault_of_start("files")
    assert fault is not None
    assert (fault.name, fault.at) == ("hang", "start")


def test_the_seed_says_which_calls_have_a_fault_by_chance(tmp_path: Path) -> None:
    def drawn(seed: int) -> list[bool]:
        faults = RunningFaultPlan(written(tmp_path, READ | {"chance": 0.25}, seed=seed))
        return [faults.fault_of_call("files", "read_file") is not None for _ in range(400)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert 60 < sum(drawn(1)) < 140


def test_every_fault_is_done_by_one_function_at_moments_that_exist() -> None:
    assert sorted([*ACTS, *ANSWERS]) == sorted(FAULTS)
    assert {moment for kind in FAULTS.values() for moment in kind.moments} == set(MOMENTS)


def test_the_sample_plan_lists_every_key_moment_and_fault_and_can_be_used() -> None:
    listed = re.findall(r"^#   ([a-z0-9_]+) +(.+)$", REFERENCE.read_text(), re.MULTILINE)
    keys = {"seed", *FaultEntry.__struct_fields__}
    assert {key for key, _ in listed[: len(keys)]} == keys
    anywhere = FAULTS["exit"].moments
    of = {name: "" if kind.moments == anywhere else f" ({', '.join(kind.moments)})" for name, kind in FAULTS.items()}
    faults = [(name, f"{kind.what}{of[name]}") for name, kind in FAULTS.items()]
    assert listed[len(keys) :] == [*MOMENTS.items(), *faults]
    assert read_plan(REFERENCE).entries
