"""Every row of the command corpora through `strongroom call`, rehearsed and committed: none gets out, none is blocked.

Rows take place one after another on one root, which is made anew for each; daemons are shared by rows that need the
same environment. Rows that take for ever have less time than the others.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.workers.shell import corpus
from tests.workers.shell.corpus import Answer, Caller, Facts, Row, Scene

ROWS = corpus.rows("commands.json") + corpus.rows("more_commands.json")
LINES = [row for row in ROWS if "line" in row]

PATIENT_S = 30.0
HASTY_S = 0.7
"""Seconds that commands have: of rows that end by themselves, and of the others."""

Start = Callable[[str, Row], Caller]


def names(rows: list[Row]) -> list[str]:
    return [f"{row['id']}-{row['class']}" for row in rows]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("t"))
    scene.reset()
    yield scene
    scene.listener.close()


@contextmanager
def starting(scene: Scene, before: Sequence[str] = ()) -> Iterator[Start]:
    """Return the daemon that a row needs: with the variables of all rows at once, but PATH."""
    variables = {key: value for row in ROWS for key, value in row.get("daemon_env", {}).items() if key != "PATH"}
    with ExitStack() as stack:
        callers: dict[tuple[str, float, str], Caller] = {}

        def caller(profile: str, row: Row) -> Caller:
            given = row.get("daemon_env", {})
            timeout_s = HASTY_S if row["class"] == "resource" and row["expect"] != "allow" else PATIENT_S
            key = (profile, timeout_s, given.get("PATH", str(bool(given))))
            if key not in callers or callers[key].process.poll() is not None:
                environment = {} if not given else {**variables, **given}
                opened = corpus.calling(scene, profile, timeout_s, scene.expand(environment), before)
                callers[key] = stack.enter_context(opened)
            return callers[key]

        yield caller


@pytest.fixture(scope="module")
def start(scene: Scene) -> Iterator[Start]:
    with starting(scene) as caller:
        yield caller


def run(row: Row, caller: Caller, scene: Scene, tool: str, arguments: object) -> Answer:
    """Make the fixture, call, and hold everything against the invariants."""
    scene.reset()
    for step in row.get("setup", []):
        scene.set_up(step)
    before = scene.outside()
    answer = caller.call(tool, arguments)
    assert not caller.of_commands()
    assert scene.outside() == before
    assert "CANARY" not in answer.line
    assert not scene.listener.seen()
    assert not Path("/tmp/agent-pwned").exists()
    return answer


@pytest.fixture(scope="module")
def told() -> dict[str, Answer]:
    """What rows that differ only in a variable have been answered: all variables are there in each."""
    return {}


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_a_row_ends_as_it_says(row: Row, scene: Scene, start: Start, told: dict[str, Answer]) -> None:
    if lacking := corpus.lacking(row):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    caller = start(row.get("profile", "project"), row)
    case = scene.expand(row)
    alike = json.dumps([row["argv"], row.get("setup")]) if row["class"] == "env" else row["id"]
    if alike not in told:
        told[alike] = run(case, caller, scene, case.get("tool", "exec_shell"), corpus.arguments(case))
    answer = told[alike]
    corpus.judge(case, answer)
    corpus.check(Facts(scene, caller, answer, case))
    assert caller.call("list_directory", {"path": "."}).ok


@pytest.mark.parametrize("row", LINES, ids=names(LINES))
def test_a_line_is_contained_when_a_shell_reads_it(row: Row, scene: Scene, start: Start) -> None:
    caller = start("operator", row)
    case = scene.expand(row)
    answer = run(case, caller, scene, "run_cmd", {"command": case["line"]})
    corpus.check(Facts(scene, caller, answer, case))


def test_every_row_has_a_name_of_its_own() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS)
