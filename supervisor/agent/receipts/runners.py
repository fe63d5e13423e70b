"""Runners: programs that check something, known by how they are started. A table.

Rule: pure. The program that ran says which runner it was, and its exit code whether the check passed; what it printed
is only read for counts, and to see that there was anything to run. A program that is found by a path of its own is
known where that leads into an environment or a directory of packages, and is nobody's else.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from supervisor.journal.receipt import CheckKind


class Counts(NamedTuple):
    """Tests as a runner counts them; None where it does not say."""

    passed: int | None = None
    failed: int | None = None

    @property
    def none_ran(self) -> bool:
        """Whether there was nothing to run."""
        return self.passed == 0 and not self.failed


class Runner(NamedTuple):
    """One row of the table."""

    name: str
    """Empty: as its program is called."""
    kind: CheckKind
    started: re.Pattern[str]
    """Matches the beginning of its words, joined by blanks."""
    idle: re.Pattern[str] | None = None
    """Matches words with which it runs nothing."""
    passed: re.Pattern[str] | None = None
    failed: re.Pattern[str] | None = None
    """Find numbers in what it printed; all of them count together."""
    ran: re.Pattern[str] | None = None
    """Finds how many ran, in place of how many passed."""
    nothing: re.Pattern[str] | None = None
    """Found in what it printed where there was nothing to run."""
    something: re.Pattern[str] | None = None
    """Found where there was something after all."""


def _row(name: str, kind: CheckKind, started: str, **patterns: str) -> Runner:
    made = {key: re.compile(pattern, re.MULTILINE) for key, pattern in patterns.items()}
    return Runner(name, kind, re.compile(rf"(?:{started})(?= |\Z)"), **made)


_HELP: Final = r"(?:^| )(?:--help|--version|-h|-V)(?: |$)"
_JEST: Final = {"passed": r"^Tests: .*?(\d+) passed", "failed": r"^Tests: .*?(\d+) failed", "nothing": "No tests found"}
_MAVEN: Final = {"ran": r"^(?:\[\w+\] )?Tests run: (\d+), Failures: \d+, Errors: \d+(?:, Skipped: \d+)?\s*$"}

RUNNERS: Final = (
    _row(
        "pytest",
        "tests",
        r"pytest|py\.test|pytest-3",
        idle=r"(?:^| )(?:--co|--collect-only|--help|-h|--version|-V|--fixtures|--markers|--setup-plan|--setup-only)\b",
        passed=r"(?:^[= ]*|, )(\d+) passed\b(?=[\w, ]* in [\d.]+)",
        failed=r"(?:^[= ]*|, )(\d+) (?:failed|errors?)\b(?=[\w, ]* in [\d.]+)",
        nothing=r"^[= ]*(?:no tests ran|\d+ deselected|(?:\d+ skipped(?:, )?)+) in [\d.]+",
    ),
    _row(
        "unittest",
        "tests",
        "unittest",
        idle=_HELP,
        ran=r"^Ran (\d+) tests?\b",
        failed=r"^FAILED \(.*?(?:failures|errors)=(\d+)",
    ),
    _row("django", "tests", r"manage\.py test", ran=r"^Ran (\d+) tests?\b"),
    _row("jest", "tests", "jest|react-scripts test", idle=r"--listTests|" + _HELP, **_JEST),
    _row(
        "vitest",
        "tests",
        "vitest",
        idle=r"(?:^| )list(?: |$)|" + _HELP,
        passed=r"^[ \t]*Tests  .*?(\d+) passed",
        failed=r"^[ \t]*Tests  .*?(\d+) failed",
        nothing="No test files found",
    ),
    _row(
        "mocha",
        "tests",
        "mocha",
        idle="--dry-run|" + _HELP,
        passed=r"^[ \t]*(\d+) passing\b",
        failed=r"^[ \t]*(\d+) failing\b",
    ),
    _row(
        "node --test",
        "tests",
        r"node (?:\S+ )*--test",
        passed=r"^[#\u2139] pass (\d+)",
        failed=r"^[#\u2139] fail (\d+)",
    ),
    _row("bun test", "tests", "bun test", passed=r"^[ \t]*(\d+) pass\s*$", failed=r"^[ \t]*(\d+) fail\s*$"),
    _row("deno test", "tests", "deno test", passed=r"\| (\d+) passed", failed=r"passed.* \| (\d+) failed"),
    _row(
        "playwright",
        "tests",
        "playwright test",
        idle="--list",
        passed=r"^[ \t]*(\d+) passed",
        failed=r"^[ \t]*(\d+) failed",
    ),
    _row(
        "go test",
        "tests",
        "go test",
        idle=r" -(?:list|c|n)(?: |=|$)",
        nothing=r"\[no test(?:s to run| files)\]|no packages to test",
        something=r"^ok\s+\S+\s+(?:\([\w ]+\)|[\d.]+s)(?!.*\[no tests to run\])",
    ),
    _row(
        "cargo test",
        "tests",
        r"cargo (?:\+\S+ )?(?:test|t|nextest run)",
        idle=r"--no-run|--list|" + _HELP,
        passed=r"(?:^test result: \w+\. |tests? run: )(\d+) passed",
        failed=r"^test result: \w+\. \d+ passed; (\d+) failed|tests? run: .*?(\d+) failed",
    ),
    _row(
        "ctest",
        "tests",
        "ctest",
        idle=r"(?:^| )(?:-N|--show-only)",
        ran=r"tests failed out of (\d+)",
        failed=r"(\d+) tests failed out of",
        nothing="No tests were found",
    ),
    _row(
        "maven",
        "tests",
        r"(?:mvn|mvnw)(?: \S+)* (?:test|verify|package|install)",
        idle="-DskipTests|-Dmaven.test.skip",
        **_MAVEN,
    ),
    _row(
        "gradle",
        "tests",
        r"(?:gradle|gradlew)(?: \S+)* (?:\S*:)?(?:test|check|build)",
        idle=r"(?:-x|--exclude-task) test|--dry-run|(?:^| )-m(?: |$)",
        ran=r"^(\d+) tests? completed",
        failed=r"tests? completed, (\d+) failed",
        nothing=r"^> Task \S*test NO-SOURCE",
    ),
    _row("rspec", "tests", "rspec", idle="--dry-run", ran=r"^(\d+) examples?,", failed=r"examples?, (\d+) failures?"),
    _row(
        "phpunit",
        "tests",
        "phpunit|artisan test|pest",
        ran=r"^(?:OK \(|Tests: )(\d+)",
        failed=r"(?:Failures|Errors): (\d+)",
    ),
    _row(
        "dotnet test", "tests", "dotnet test", idle="--list-tests", passed=r"Passed:\s+(\d+)", failed=r"Failed:\s+(\d+)"
    ),
    _row("mix test", "tests", "mix test", ran=r"^(?:\d+ doctests?, )?(\d+) tests?,", failed=r"tests?, (\d+) failures?"),
    _row("swift test", "tests", "swift test", ran=r"Executed (\d+) tests?", failed=r"with (\d+) failures?"),
    _row("tox", "tests", "tox|nox", idle=r"(?:^| )(?:-l|--list|--notest)"),
    _row("mypy", "types", "mypy|dmypy run", idle=_HELP),
    _row("pyright", "types", "pyright|basedpyright", idle=_HELP),
    _row("tsc", "types", "tsc|vue-tsc", idle=r"--init|--showConfig|" + _HELP),
    _row("ruff", "lint", r"ruff (?:check|format (?:\S+ )*--check)", idle=_HELP),
    _row("eslint", "lint", "eslint", idle=r"--print-config|" + _HELP),
    _row(
        "",
        "lint",
        r"flake8|pylint|shellcheck|hadolint|yamllint|biome (?:check|lint|ci)|stylelint|golangci-lint run",
        idle=_HELP,
    ),
    _row("", "lint", r"(?:black|isort|prettier) (?:\S+ )*(?:--check|--check-only|-c|--list-different)", idle=_HELP),
    _row("pre-commit", "lint", "pre-commit run"),
    _row("go vet", "lint", "go vet"),
    _row("clippy", "lint", r"cargo (?:\+\S+ )?clippy"),
    _row("cargo fmt", "lint", r"cargo (?:\+\S+ )?fmt (?:\S+ )*--check"),
    _row("cargo build", "build", r"cargo (?:\+\S+ )?(?:build|b|check|c|doc|run|r)", idle=_HELP),
    _row("go build", "build", r"go (?:build|install|run|generate)"),
    _row("maven", "build", r"(?:mvn|mvnw)(?: \S+)* (?:compile|package|install|verify)"),
    _row("gradle", "build", r"(?:gradle|gradlew)(?: \S+)* (?:\S*:)?(?:assemble|build|jar|classes|compile\w*)"),
    _row("cmake", "build", "cmake (?:\\S+ )*--build|ninja|meson compile"),
    _row("dotnet build", "build", "dotnet (?:build|publish)"),
    _row("swift build", "build", "swift build"),
    _row(
        "",
        "build",
        r"gcc|g\+\+|cc|c\+\+|clang|clang\+\+|javac|rustc|kotlinc|(?:vite|next|docker) build|webpack|rollup|esbuild",
    ),
    _row("compileall", "build", "compileall|py_compile|build"),
)
"""The first row that matches counts; what is not here is no check."""

_SCRIPTS: Final[tuple[tuple[CheckKind, re.Pattern[str]], ...]] = (
    ("tests", re.compile(r"(?:^|[-_.:/ ])(?:tests?|spec|e2e|t)(?:[-_.:/ ]|$)")),
    ("types", re.compile(r"(?:^|[-_.:/ ])(?:type-?check|types|tsc|mypy)(?:[-_.:/ ]|$)")),
    ("lint", re.compile(r"(?:^|[-_.:/ ])(?:lint|check|format-check|fmt-check|ci)(?:[-_.:/ ]|$)")),
    ("build", re.compile(r"(?:^|[-_.:/ ])(?:build|compile|dist|all)(?:[-_.:/ ]|$)")),
)
"""What a project's own script checks, by its name; its exit code is all that is known of it."""
_TASKS: Final = re.compile(
    r"(?:npm|yarn|pnpm|bun)(?: run| run-script)? ([\w:.-]+)"
    r"|(?:make|gmake|just|task|rake|invoke|inv|composer|poe) ([\w:.-]+)"
)
_DIGITS: Final = 9
_PRINTED: Final = 2**16
"""Characters of what a runner printed that are read, the last ones."""
_TOO_LONG: Final = re.compile(r"^.{401,}$", re.MULTILINE)
"""Lines that are no summary; some patterns would take long to see that."""
_BARE_MAKE: Final = frozenset({"make", "gmake"})
_OWN: Final = re.compile(r"/?(?:[\w.-]+/)*[\w.-]+")
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash"})
_PYTHON: Final = re.compile(r"python[\d.]*|pypy\d*")
_ENVIRONMENT: Final = re.compile(
    r"(?:^|/)(?:\.?v?envs?/[^/]+/bin|[\w.-]*v?env/bin|node_modules/\.bin|vendor/bin|usr(?:/local)?/s?bin|opt/[\w./-]+/bin)/([\w.+-]+)"
)
_WRAPPERS: Final = re.compile(r"\.?/?(?:[\w.-]+/)*(gradlew|mvnw|manage\.py|artisan)")
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\\x1b\[[0-9;?]*[A-Za-z]")


def runner_of(words: Sequence[str]) -> Runner | None:
    """Return the runner that a simple command starts, once what launches it is left out; None where it is none."""
    line = " ".join([_program(words[0]), *words[1:]])
    for row in RUNNERS:
        if row.started.match(line):
            if row.idle is not None and row.idle.search(line):
                continue
            return row if row.name else row._replace(name=_program(words[0]))
    return _script(words, line)


def _program(word: str) -> str:
    """Return the name by which a program is known; a path of its own stays one."""
    if found := _WRAPPERS.fullmatch(word):
        return found[1]
    found = _ENVIRONMENT.search(word)
    return found[1] if found is not None and found.end() == len(word) else word


def _script(words: Sequence[str], line: str) -> Runner | None:
    """Return a task or a script of the project that checks something by its name."""
    if task := _TASKS.match(line):
        name, shown = task[1] or task[2], " ".join(words[: 3 if words[1] in ("run", "run-script") else 2])
    elif words[0] in _BARE_MAKE:
        name, shown = "all", words[0]
    else:
        file = next((each for each in words[1:] if not each.startswith("-")), "") if _interprets(words[0]) else words[0]
        if "/" not in file and not (_interprets(words[0]) and "." in file):
            return None
        name = shown = file if _OWN.fullmatch(file) else ""
    kind = next((kind for kind, named in _SCRIPTS if name and named.search(name)), None)
    return None if kind is None else Runner(shown, kind, re.compile(""))


def _interprets(program: str) -> bool:
    return program in _SHELLS or _PYTHON.fullmatch(program) is not None or program in ("node", "ruby", "perl", "php")


def counts_in(runner: Runner, printed: str) -> Counts:
    """Return what a runner has counted, by what it printed."""
    text = _TOO_LONG.sub("", _ESCAPES.sub("", printed[-_PRINTED:]))
    if runner.nothing is not None and runner.nothing.search(text) and not _finds(runner.something, text):
        return Counts(0, 0)
    passed, ran, failed = (_total(each, text) for each in (runner.passed, runner.ran, runner.failed))
    if ran is not None:
        return Counts(max(0, ran - (failed or 0)), failed or 0)
    if passed is None and failed is None:
        return Counts()
    return Counts(passed or 0, failed or 0)


def _finds(pattern: re.Pattern[str] | None, text: str) -> bool:
    return pattern is not None and pattern.search(text) is not None


def _total(pattern: re.Pattern[str] | None, text: str) -> int | None:
    """Return the sum of the numbers that a pattern finds; None without any."""
    found = [next(filter(None, each.groups()), "0") for each in pattern.finditer(text)] if pattern is not None else []
    return sum(int(each) for each in found if len(each) <= _DIGITS) if found else None
