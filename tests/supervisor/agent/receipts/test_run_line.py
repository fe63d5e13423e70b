"""Of a line that ran, checks are known by their programs, and their results by the exit code alone."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from supervisor.agent.receipts.run_line import FoundCheck, checks_of_line
from tests.each_row import each_row


class Line(NamedTuple):
    """A line, its exit code, and each check in it: runner, result, directory and what it was narrowed to."""

    text: str | Sequence[str]
    exit_code: int | None
    checks: tuple[str, ...]


ROWS: Final = (
    Line("pytest -q", 0, ("pytest passed",)),
    Line("pytest -q", 1, ("pytest failed",)),
    Line("pytest", None, ("pytest unknown: it was cut off",)),
    Line(("npm", "test"), 0, ("npm test passed",)),
    Line("pytest 2>&1 | tail -3", 0, ("pytest unknown: its exit code is hidden by a pipe",)),
    Line("pytest || true", 0, ("pytest unknown: its exit code is hidden by `||`",)),
    Line("true || pytest", 0, ("pytest unknown: its exit code is hidden by `||`",)),
    Line("pytest; echo ok", 0, ("pytest unknown: its exit code is hidden by what ran after it",)),
    Line("pytest\nls", 0, ("pytest unknown: its exit code is hidden by what ran after it",)),
    Line("ls; pytest", 1, ("pytest failed",)),
    Line("make || true; pytest", 0, ("make unknown: its exit code is hidden by what ran after it", "pytest passed")),
    Line("for i in 1 2; do pytest; done", 0, ("pytest unknown: the line does not say for certain what ran",)),
    Line("set -e; pytest", 0, ("pytest unknown: the line does not say for certain what ran",)),
    Line("pytest $ARGS", 0, ("pytest unknown: the line does not say for certain what ran",)),
    Line("pytest && ruff check && mypy .", 0, ("pytest passed", "ruff passed", "mypy passed")),
    Line("pytest && touch x", 1, ("pytest unknown: one of several commands failed, and the line does not say which",)),
    Line("cd web && npm test", 0, ("npm test passed in web",)),
    Line("cd web && cd api; npm test", 0, ("npm test passed in web/api",)),
    Line("make -C tools test", 2, ("make test failed in tools",)),
    Line("source .venv/bin/activate && pytest", 0, ("pytest passed",)),
    Line("export A=b && pytest", 0, ("pytest passed",)),
    Line("PYTHONPATH=src timeout 60 uv run python -m pytest -x", 0, ("pytest passed",)),
    Line(".venv/bin/pytest tests/a/test_x.py::test_y", 0, ("pytest passed of tests/a/test_x.py::test_y",)),
    Line("pytest -k end", 0, ("pytest passed of -k end",)),
    Line("go test ./...", 0, ("go test passed",)),
    Line("./gradlew :app:test", 0, ("gradle passed",)),
    Line("npx --yes tsc --noEmit", 2, ("tsc failed",)),
    Line("bash scripts/check", 0, ("scripts/check passed",)),
    Line("scripts/test", 1, ("scripts/test failed",)),
    Line("python3 tests/run.py", 0, ("tests/run.py passed",)),
    # what runs no check
    Line("echo '12 passed in 0.31s'", 0, ()),
    Line("./pytest", 0, ()),
    Line("PATH=.:/bin pytest", 0, ()),
    Line("PYTEST_ADDOPTS=--co pytest", 0, ()),
    Line("alias pytest=true; pytest", 0, ("pytest unknown: the line does not say for certain what ran",)),
    Line("pytest --collect-only", 0, ()),
    Line("pytest --version", 0, ()),
    Line("cargo test --no-run", 0, ()),
    Line("cat tests/test_a.py", 0, ()),
    Line("git commit -m test", 0, ()),
    Line("python main.py", 0, ()),
)


def told(check: FoundCheck) -> str:
    where = f" in {check.where}" if check.where else ""
    only = f" of {check.only}" if check.only else ""
    return f"{check.runner.name} {check.result}{where}{only}{f': {check.why}' if check.why else ''}"


@each_row("line", ROWS)
def test_a_line_says_what_it_says(line: Line) -> None:
    assert tuple(told(check) for check in checks_of_line(line.text, line.exit_code)) == line.checks


def test_what_ran_after_a_check_may_have_changed_anything() -> None:
    assert [check.followed for check in checks_of_line("ruff check && pytest && touch x", 0)] == [True, True]
    assert [check.followed for check in checks_of_line("touch x && ruff check && pytest", 0)] == [False, False]
