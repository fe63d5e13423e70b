"""One row of a path corpus: its fixture, its set-up and its checks, as tests/corpus/README.md says."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.raw_worker import RawWorker
from workers.wire import frames, messages

CORPUS = Path(__file__).parents[2] / "corpus"
HANG = 60.0
"""Seconds in which every call answers."""

EXCHANGE = """
import ctypes, os, sys
a, b = map(os.fsencode, sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
print("exchanging", flush=True)
while True:
    if libc.renameat2(-100, a, -100, b, 2):
        sys.exit(os.strerror(ctypes.get_errno()))
"""

Snapshot = dict[str, tuple[int, bytes]]


@dataclass(frozen=True)
class Outcome:
    """How one call ended: `kind` is empty after success."""

    kind: str
    text: str
    everything: str
    seconds: float


def rows(tools: set[str], *files: str) -> list[dict[str, Any]]:
    """Return the rows of corpus files whose tool is one of `tools`; there are some for each."""
    cases: list[dict[str, Any]] = [case for file in files for case in json.loads((CORPUS / file).read_text())["cases"]]
    found = [case for case in cases if case["tool"] in tools]
    assert {case["tool"] for case in found} == tools
    return found


def title(row: dict[str, Any]) -> str:
    return f"{row['id']}-{row['class']}"


class Place:
    """The directories of one case."""

    def __init__(self, tmp: Path) -> None:
        self.names = {"TMP": tmp, "ROOT": tmp / "vault", "OUT": tmp / "outside", "SIB": tmp / "vault-evil"}
        self.root, self.out, self.sib = self.names["ROOT"], self.names["OUT"], self.names["SIB"]
        head = json.loads((CORPUS / "paths.json").read_text())["fixture"]
        for path, text in head["files"].items():
            _put(self.expand(path), text.encode())

    def expand(self, value: Any) -> Any:
        """Replace variables and big values, at any depth."""
        if isinstance(value, str):
            for name, path in self.names.items():
                value = value.replace(f"${name}", str(path))
            return value
        if isinstance(value, list):
            return [self.expand(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$repeat" in value:
            text, count = value["$repeat"]
            return self.expand(text) * count
        if "$concat" in value:
            return "".join(self.expand(value["$concat"]))
        return {name: self.expand(each) for name, each in value.items()}


def set_up(step: dict[str, Any]) -> None:
    """Do one step that comes before the worker's start; one of its keys names it."""
    STEPS[next(key for key in step if key in STEPS)](step)


@contextmanager
def under_way(step: dict[str, Any], root: Path) -> Iterator[int]:
    """Do one step that comes after the worker's start; yield how many calls are to be made."""
    if "race" in step:
        command = [sys.executable, "-c", EXCHANGE, *step["race"]["exchange"]]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout
                process.stdout.readline()
                yield int(step["race"]["calls"])
                assert process.poll() is None
            finally:
                process.kill()
    else:
        os.rename(root, f"{root}.away")
        os.symlink(step["swap_root_with_symlink"], root)
        yield 1


def is_late(step: dict[str, Any]) -> bool:
    return "race" in step or "swap_root_with_symlink" in step


def call(worker: RawWorker, tool: str, arguments: Any) -> Outcome:
    """Call with the arguments as a model writes them, lone surrogates too. Kill a worker that hangs."""
    started = time.monotonic()
    answer: messages.Done | messages.Failed
    guard = threading.Timer(HANG, worker.process.kill)
    guard.start()
    try:
        answer = worker.call(tool, json.dumps(arguments).encode())
    except frames.FrameTooLarge:
        answer = messages.Failed(0, "too_large", "the call does not fit a frame")
    finally:
        guard.cancel()
    seconds = time.monotonic() - started
    if isinstance(answer, messages.Done):
        return Outcome("", answer.content, answer.content + answer.note, seconds)
    return Outcome(answer.kind, answer.message, f"{answer.message}{answer.details}", seconds)


def play(
    row: dict[str, Any],
    place: Place,
    start: Callable[[], AbstractContextManager[RawWorker]],
    then: tuple[str, dict[str, str]],
) -> Outcome:
    """Assert that a row ends as it says, and that nothing outside has changed; return how the call `then` ends."""
    case = row if row.get("literal") else place.expand(row)
    checks = [item for each in case.get("checks", []) for item in each.items()]
    for step in case.get("setup", []):
        if not is_late(step):
            set_up(step)
    outside = snapshot(place.out) | snapshot(place.sib)
    looks_at_names = any(name in {"unchanged", "no_new_files"} for name, _ in checks)
    before = outside | (snapshot(place.root) if looks_at_names else {})
    try:
        with start() as worker, ExitStack() as late:
            assert isinstance(worker.ready, messages.Ready), worker.ready
            calls = 1
            for step in filter(is_late, case.get("setup", [])):
                calls = late.enter_context(under_way(step, place.root))
            for _ in range(calls):
                outcome = call(worker, case["tool"], case["args"])
                assert outcome.seconds < HANG
                assert "CANARY" not in outcome.everything
                judge(case, outcome)
                for name, wanted in checks:
                    check(name, wanted, outcome, before)
            late.close()
            after = call(worker, *then)
        assert snapshot(place.out) | snapshot(place.sib) == outside
    finally:
        clear(place)
    return after


def judge(case: dict[str, Any], outcome: Outcome) -> None:
    """Assert what `expect` and `kind` say."""
    expected = case["expect"]
    if outcome.kind:
        assert expected != "allow", outcome
        assert outcome.kind in case["kind"], outcome
    else:
        assert expected in {"allow", "either"}, outcome


def snapshot(directory: Path) -> Snapshot:
    """Return names, modes and content of everything in a directory."""
    found: Snapshot = {}
    for path in sorted([directory, *directory.rglob("*")]):
        mode = path.lstat().st_mode
        regular = path.is_file() and not path.is_symlink()
        target = os.fsencode(os.readlink(path)) if path.is_symlink() else b""
        found[str(path)] = (mode, path.read_bytes() if regular else target)
    return found


def check(name: str, wanted: Any, outcome: Outcome, before: Snapshot) -> None:
    """Assert one check. Those of the result apply to success alone."""
    if name == "one_of":
        assert any(_holds(each, outcome, before) for each in wanted), wanted
    elif name in OF_RESULT:
        assert outcome.kind or OF_RESULT[name](outcome, wanted), (name, wanted, outcome.text[:500])
    else:
        assert ALWAYS[name](outcome, wanted, before), (name, wanted, outcome)


def _holds(checks: dict[str, Any], outcome: Outcome, before: Snapshot) -> bool:
    try:
        for name, wanted in checks.items():
            check(name, wanted, outcome, before)
    except AssertionError:
        return False
    return True


OF_RESULT: dict[str, Callable[[Outcome, Any], bool]] = {
    "result_contains": lambda outcome, wanted: wanted in outcome.text,
    "result_not_contains": lambda outcome, wanted: wanted not in outcome.text,
    "result_equals": lambda outcome, wanted: outcome.text == wanted,
    "max_result_bytes": lambda outcome, wanted: len(outcome.text.encode()) <= wanted,
    "max_matches": lambda outcome, wanted: len(json.loads(outcome.text)) <= wanted,
    "exists": lambda _outcome, wanted: os.path.lexists(wanted),
    "content": lambda _outcome, wanted: Path(wanted[0]).read_text() == wanted[1],
}

ALWAYS: dict[str, Callable[[Outcome, Any, Snapshot], bool]] = {
    "absent": lambda _outcome, wanted, _before: not os.path.lexists(wanted),
    "max_ms": lambda outcome, wanted, _before: outcome.seconds * 1000 <= wanted,
    "unchanged": lambda _outcome, wanted, before: snapshot(Path(wanted))[wanted] == before[wanted],
    "no_new_files": lambda _outcome, wanted, before: set(snapshot(Path(wanted))) <= set(before),
}


def clear(place: Place) -> None:
    """Remove everything of a case; its root is left, empty, if it is there."""
    for path in place.names["TMP"].iterdir():
        if path != place.root or path.is_symlink():
            remove(path)
    if place.root.exists():
        for path in place.root.iterdir():
            remove(path)


def remove(path: Path) -> None:
    """Remove a file, or a tree of any depth and any modes."""
    try:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except (OSError, RecursionError):
        _remove_by_force(path)


def _remove_by_force(directory: Path) -> None:
    chmod, rm = shutil.which("chmod"), shutil.which("rm")
    assert chmod
    assert rm
    subprocess.run([chmod, "-R", "u+rwx", str(directory)], check=False, stderr=subprocess.DEVNULL)
    subprocess.run([rm, "-rf", str(directory)], check=True)


def _put(path: str | bytes, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def _file(step: dict[str, Any]) -> None:
    text = step.get("text", "x" * step.get("fill", 0))
    _put(step["file"], base64.b64decode(step["b64"]) if "b64" in step else text.encode())
    if "size" in step:
        os.truncate(step["file"], step["size"])


def _named_in_bytes(step: dict[str, Any]) -> None:
    directory, name = step["file_b64name"]
    _put(os.path.join(os.fsencode(directory), base64.b64decode(name)), step["text"].encode())


def _link(step: dict[str, Any]) -> None:
    os.makedirs(os.path.dirname(step["symlink"]), exist_ok=True)
    os.symlink(step["to"], step["symlink"])


def _many(step: dict[str, Any]) -> None:
    for number in range(step["many"]["count"]):
        _put(f"{step['many']['dir']}/f{number:06}.txt", step["many"].get("text", "").encode())


def _socket(path: str) -> None:
    """Bind by a short name: a socket's path has room for 107 bytes only."""
    here = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"/proc/self/fd/{here}/{os.path.basename(path)}")
    finally:
        os.close(here)


def _deep(directory: str, levels: int) -> None:
    os.makedirs(directory, exist_ok=True)
    here = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("leaf.txt", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


STEPS: dict[str, Callable[[dict[str, Any]], None]] = {
    "mkdir": lambda step: os.makedirs(step["mkdir"], exist_ok=True),
    "file": _file,
    "file_b64name": _named_in_bytes,
    "symlink": _link,
    "hardlink": lambda step: os.link(step["to"], step["hardlink"]),
    "fifo": lambda step: os.mkfifo(step["fifo"]),
    "unix_socket": lambda step: _socket(step["unix_socket"]),
    "chmod": lambda step: os.chmod(step["chmod"], int(step["mode"], 8)),
    "many": _many,
    "deep": lambda step: _deep(step["deep"]["dir"], step["deep"]["levels"]),
}
