"""What runners have counted, as they print it."""

from typing import Final, NamedTuple

from supervisor.agent.receipts.runners import Counts, counts_in, runner_of
from tests.each_row import each_row


class Printed(NamedTuple):
    """What a runner prints, and its count of tests that passed and failed."""

    command: str
    text: str
    passed: int | None
    failed: int | None


_GO_NONE: Final = "?   \texample.com/a\t[no test files]\n"
_MAVEN: Final = "[INFO] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0\n"

ROWS: Final = (
    Printed("pytest", "===== 12 passed in 0.31s =====\n", 12, 0),
    Printed("pytest -q", "1 failed, 11 passed, 2 warnings in 0.40s\n", 11, 1),
    Printed("pytest", "==== 2 failed, 3 passed, 1 error in 1.0s ====\n", 3, 3),
    Printed("pytest", "\x1b[32m===== \x1b[1m12 passed\x1b[0m\x1b[32m in 0.31s =====\n", 12, 0),
    Printed("pytest", "==== no tests ran in 0.01s ====\n", 0, 0),
    Printed("pytest", "==== 3 skipped in 0.01s ====\n", 0, 0),
    Printed("pytest", "the test printed: 99 passed\n", None, None),
    Printed("unittest", "Ran 12 tests in 0.1s\n\nOK\n", 12, 0),
    Printed("unittest", "Ran 12 tests in 0.1s\n\nFAILED (failures=2)\n", 10, 2),
    Printed("unittest", "Ran 0 tests in 0.000s\n\nOK\n", 0, 0),
    Printed("jest", "Tests:       1 failed, 2 skipped, 5 passed, 8 total\n", 5, 1),
    Printed("jest --passWithNoTests", "No tests found, exiting with code 0\n", 0, 0),
    Printed("vitest run", " Test Files  1 passed (1)\n      Tests  1 failed | 5 passed (6)\n", 5, 1),
    Printed("mocha", "\n  5 passing (10ms)\n  1 failing\n", 5, 1),
    Printed("mocha", "\n  0 passing (1ms)\n", 0, 0),
    Printed("node --test", "\u2139 tests 3\n\u2139 pass 2\n\u2139 fail 1\n", 2, 1),
    Printed("go test ./...", _GO_NONE, 0, 0),
    Printed("go test ./...", f"{_GO_NONE}ok  \texample.com/b\t0.003s\n", None, None),
    Printed("cargo test", "test result: ok. 3 passed; 0 failed; x\ntest result: FAILED. 2 passed; 1 failed; x\n", 5, 1),
    Printed("cargo test", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n", 0, 0),
    Printed("ctest", "80% tests passed, 1 tests failed out of 5\n", 4, 1),
    Printed("ctest", "No tests were found!!!\n", 0, 0),
    Printed("mvn test", f"{_MAVEN}", 5, 0),
    Printed("gradle test", "5 tests completed, 1 failed\n", 4, 1),
    Printed("gradle test", "> Task :app:test NO-SOURCE\n", 0, 0),
    Printed("rspec", "5 examples, 1 failure\n", 4, 1),
    Printed("mypy src", "Success: no issues found in 3 source files\n", None, None),
)


@each_row("row", ROWS)
def test_a_runner_counts(row: Printed) -> None:
    runner = runner_of(row.command.split())
    assert runner is not None
    assert counts_in(runner, row.text) == Counts(row.passed, row.failed)
