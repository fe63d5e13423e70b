"""What turns did, as facts: one history a name, without the turn's end."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from supervisor.agent.receipts.receipt_fold import ReceiptFold
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, TurnEnded, TurnStarted
from supervisor.journal.receipt import Receipt
from workers.changes.effects import Change, Effects, NodeState
from workers.wire.messages import ErrorKind

APP: Final = "src/app.py"
_OUTSIDE: Final = 0
"""The turn of calls that a person makes."""


def state(content: str) -> NodeState:
    """Return what a file with this content is."""
    return NodeState("file", 0o644, len(content), 0, hashlib.sha256(content.encode()).digest())


def effects(path: str, before: str | None, after: str | None, *, ignored: bool = False) -> Effects:
    """Return the change of one file."""
    what: Any = "added" if before is None else "deleted" if after is None else "modified"
    old, new = (None if content is None else state(content) for content in (before, after))
    return Effects((Change(path, what, old, new, ignored=ignored),), {what: 1}, b"")


class Story:
    """Facts of a session, one call after the other."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.turn = 0
        self._ids = map("call_{}".format, count(1))
        self.next_turn()

    def next_turn(self) -> None:
        """Begin a turn; one that was open has ended."""
        if self.turn:
            self.facts.append(TurnEnded(self.turn, "ok", "done"))
        self.turn += 1
        self.facts.append(TurnStarted(self.turn, "go on"))

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        change: Effects | None = None,
        *,
        content: str = "",
        kind: ErrorKind | None = None,
        committed: bool = True,
        undoes: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a call, and return its id; with a `kind` it fails."""
        call, turn = next(self._ids), _OUTSIDE if undoes else self.turn
        effect = change is not None
        self.facts.append(CallStarted(turn, call, tool, json.dumps(arguments), effect, "allow", "", rehearsed=effect))
        if change is not None:
            self.facts.append(CallDecided(turn, call, "allow", "", committed, change, undoes=undoes))
        form: Any = "json" if content.startswith("{") else "text"
        ended = CallEnded(turn, call, tool, kind is None, content, form, kind=kind, details=dict(details or {}))
        self.facts.append(ended)
        return call

    def edit(self, path: str = APP, before: str | None = "a", after: str | None = "b", **more: Any) -> str:
        """Change a file by a tool."""
        arguments = {"path": path, "old": before, "new": after}
        return self.call("edit_file", arguments, effects(path, before, after), **more)

    def run(self, command: str, code: int = 0, out: str = "", change: Effects | None = None) -> str:
        content = json.dumps({"stdout": out, "stderr": "", "exit_code": code})
        return self.call("run_cmd", {"command": command}, change, content=content)

    def read(self, path: str) -> str:
        return self.call("read_file", {"path": path}, content="some text")

    def undo(self, call: str, path: str = APP, before: str = "b", after: str = "a") -> None:
        """Take a call back, as a person does."""
        self.call("undo", {"pack": "p"}, effects(path, before, after), undoes=call)

    def receipt(self, answer: str = "") -> Receipt | None:
        """Return the receipt of the turn that ends with this answer."""
        fold = ReceiptFold()
        for fact in self.facts:
            fold.apply(fact)
        return fold.of(TurnEnded(self.turn, "ok", answer))


Step = Callable[[Story], object]

_PASSED: Final = "============ 12 passed in 0.31s ============\n"
_FAILED: Final = "FAILED tests/test_app.py::test_end\n======= 1 failed, 11 passed in 0.40s =======\n"


def _edit(**more: Any) -> Step:
    return lambda story: story.edit(**more)


def _run(command: str, code: int = 0, out: str = "", change: Effects | None = None) -> Step:
    return lambda story: story.run(command, code, out, change)


def _denied(story: Story) -> None:
    story.edit(kind="denied", committed=False)


def _undone(story: Story) -> None:
    story.undo(story.edit())


def _next_turn(story: Story) -> None:
    story.next_turn()


def _read(path: str) -> Step:
    return lambda story: story.read(path)


def _fetched(story: Story) -> None:
    story.call("fetch_url", {"url": "https://example.com/spec"}, content="The spec")


def _planned(story: Story) -> None:
    story.edit(committed=False, kind="denied", content="Nothing was changed: the session is in plan mode.")


_JEST: Final = "Tests:       12 passed, 12 total\nSnapshots:   0 total\n"
_CARGO: Final = "running 12 tests\ntest result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; finished in 0.0s\n"
_CARGO_FAILED: Final = "test result: FAILED. 11 passed; 1 failed; 0 ignored; 0 measured; finished in 0.00s\n"
_NONE: Final = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; finished in 0.00s\n"
_TESTED: Final = _run("python -m pytest -q", 0, _PASSED, effects(".pytest_cache/lastfailed", None, "x"))

HISTORIES: Final[Mapping[str, tuple[Step, ...]]] = MappingProxyType(
    {
        "nothing": (),
        "looked": (_run("ls"), _read("README.md")),
        "edited": (_edit(),),
        "edited_long": (_read("src/app.py"), _edit()),
        "edited_other": (_edit(path="lib/other.c"),),
        "edited_by_command": (_run("sed -i s/a/b/ src/app.py", 0, "", effects(APP, "a", "b")),),
        "edited_earlier": (_edit(), _next_turn),
        "denied": (_denied,),
        "planned": (_planned,),
        "undone": (_undone,),
        "edit_failed": (_edit(kind="no_match", committed=False),),
        "tested": (_edit(), _TESTED),
        "npm_tested": (_edit(), _run("npx jest", 0, _JEST)),
        "cargo_tested": (_edit(), _run("cargo test", 0, _CARGO)),
        "committed_after": (
            _edit(),
            _TESTED,
            _run("git add -A && git commit -m fix", 0, "", effects(".git/index", "a", "b")),
            _run("grep -c todo src/app.py", 1),
        ),
        "prose_after": (_edit(), _TESTED, _edit(path="CHANGELOG.md")),
        "tested_earlier": (_edit(), _TESTED, _next_turn),
        "failed": (_edit(), _run("pytest", 1, _FAILED)),
        "npm_failed": (_edit(), _run("npx jest", 1, "Tests:       1 failed, 11 passed, 12 total\n")),
        "cargo_failed": (_edit(), _run("cargo test", 101, _CARGO_FAILED)),
        "unittest_failed": (_edit(), _run("python3 -m unittest", 1, "Ran 12 tests in 0.1s\n\nFAILED (failures=1)\n")),
        "chain_failed": (_edit(), _run("pytest && ruff check", 1, _FAILED)),
        "stale": (_TESTED, _edit()),
        "stale_command": (_TESTED, _run("sed -i s/a/b/ src/app.py", 0, "", effects(APP, "a", "b"))),
        "stale_npm": (_run("npx jest", 0, _JEST), _edit()),
        "elsewhere": (_edit(path="api/app.py"), _run("cd web && npm test")),
        "elsewhere_path": (_edit(path="api/app.py"), _run("pytest plugins/cache/tests", 0, _PASSED)),
        "elsewhere_make": (_edit(path="api/app.py"), _run("make -C tools test")),
        "piped": (_edit(), _run("pytest 2>&1 | tail -3", 0, _PASSED)),
        "ored": (_edit(), _run("pytest || true", 0, _FAILED)),
        "followed": (_edit(), _run("pytest; echo done", 0, _PASSED)),
        "looped": (_edit(), _run("for i in 1 2; do pytest; done", 0, _PASSED)),
        "npm_piped": (_edit(), _run("npm test | grep -c ok", 0, "12")),
        "no_tests": (_edit(), _run("python -m unittest", 0, "Ran 0 tests in 0.000s\n\nOK\n")),
        "no_tests_go": (_edit(), _run("go test ./...", 0, "?   \texample.com/a\t[no test files]\n")),
        "no_tests_cargo": (_edit(), _run("cargo test", 0, _NONE)),
        "no_tests_jest": (_edit(), _run("npx jest --passWithNoTests", 0, "No tests found, exiting with code 0\n")),
        "collected": (
            _edit(),
            _run("pytest --collect-only -q", 0, "tests/test_app.py::test_end\n\n12 tests collected\n"),
        ),
        "install_failed": (_run("npm install", 1, "npm ERR! 404"),),
        "build_failed": (_run("npm install", 1, "npm ERR!"), _run("npm run build", 2, "error TS2304")),
        "script_failed": (_run("npm install", 254, ""), _run("python scripts/migrate.py", 1, "Traceback")),
        "read_some": (_read("docs/design.md"),),
        "read_by_command": (_run("cat docs/design.md", 0, "some text"),),
        "fetched": (_fetched,),
        "curled": (_run("curl -s https://example.com/spec", 0, "The spec"),),
        "built": (
            _edit(),
            _run("npm install"),
            _run("npm run build"),
            _run("ruff check .", 0, "All checks passed!"),
            _run("mypy src", 0, "Success: no issues found in 12 source files"),
        ),
    }
)


def story_of(name: str) -> Story:
    story = Story()
    for step in HISTORIES[name]:
        step(story)
    return story


def texts(receipt: Receipt | None) -> Iterator[str]:
    """Yield what a receipt says is unproven."""
    yield from (f"{each.claim}: {each.why}" for each in (receipt.unproven if receipt is not None else ()))
