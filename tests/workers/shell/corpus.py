"""The command corpora: their fixture, how a row is run through `strongroom call`, and how it is judged."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from supervisor.categories.shown_places import HiddenPlaces
from supervisor.categories.toolchains import find_toolchains
from tests.forked import ForkedStrongroom
from tests.workers.commit.snapshot import Snapshot, snapshot
from tests.workers.shell.conftest import write

CORPUS: Final = Path(__file__).parents[2] / "corpus"
HANG_GUARD: Final = 90
_LIBRARIES: Final = (str(CORPUS.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")]))

Row = dict[str, Any]


def rows(file: str) -> list[Row]:
    """Return the rows of a corpus that are about what a command does; what a person is asked is judged elsewhere."""
    return [row for row in json.loads((CORPUS / file).read_text())["cases"] if row["class"] != "review"]


def lacking(row: Row) -> list[str]:
    """Return the programs that a row needs and this machine lacks."""
    return [name for name in row.get("needs", []) if shutil.which(name) is None]


class Answer(NamedTuple):
    """How a call ended."""

    ok: bool
    content: dict[str, Any]
    """The result, or the error."""
    line: str
    seconds: float

    @property
    def kind(self) -> str:
        return str(self.content.get("kind", ""))

    def text(self, stream: str) -> str:
        return str(self.content.get(stream, ""))


class Listener:
    """What must see nothing: TCP and UDP on one port, a Unix socket, an abstract one."""

    def __init__(self, path: Path) -> None:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._unix, self._abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self._unix.bind(str(path))
        self._abstract.bind(f"\0agent-{self.port}")
        self._all = (self._tcp, self._udp, self._unix, self._abstract)
        for each in (self._unix, self._abstract):
            each.listen()
        for each in self._all:
            each.setblocking(False)

    def seen(self) -> list[str]:
        found = []
        for each in self._all:
            try:
                found.append(str(each.recv(100) if each is self._udp else each.accept()))
            except BlockingIOError:
                continue
        return found

    def close(self) -> None:
        for each in self._all:
            each.close()


class Scene:
    """The fixture of the corpora, made anew for each row."""

    def __init__(self, place: Path) -> None:
        head = json.loads((CORPUS / "commands.json").read_text())
        self.place = place
        self.root, self.out, self.home = place / "project", place / "outside", place / "home"
        self.listener = Listener(place / "agent.sock")
        self.names = {
            "$TMP": str(place),
            "$ROOT": str(self.root),
            "$OUT": str(self.out),
            "$HOME": str(self.home),
            "$PORT": str(self.listener.port),
            "$DAEMON_SOCK": str(place / "agent.sock"),
            "$PATH": os.environ["PATH"],
        }
        self._files = self.expand(head["fixture"]["files"])
        self._repository = place / "repository"
        self._made: list[tuple[str, int, int]] = []
        self.root.mkdir(parents=True)
        self._make_repository()

    def expand(self, value: Any) -> Any:
        """Replace the variables in every string, and write big values out."""
        match value:
            case str():
                return re.sub(r"\$[A-Z_]+", lambda found: self.names.get(found[0], found[0]), value)
            case {"$repeat": [text, count]}:
                return text * count
            case {"$concat": parts}:
                return "".join(self.expand(parts))
            case dict():
                return {self.expand(key): self.expand(each) for key, each in value.items()}
            case list():
                return [each for part in value for each in _arguments(self.expand(part))]
        return value

    def reset(self) -> None:
        """Make everything as the fixture says, unless nothing has changed since."""
        if self._made != self._look():
            self._make()
            self._made = self._look()
        _remove(Path("/tmp/agent-pwned"))
        self.listener.seen()

    def _look(self) -> list[tuple[str, int, int]]:
        """Return what changes with everything that is there: the names, what they are of, and the times of changes."""
        found, pending = [], [str(each) for each in (self.root, self.out, self.home) if each.exists()]
        while pending:
            folder = pending.pop()
            found.append((folder, *_identity(os.lstat(folder))))
            for each in os.scandir(folder):
                if each.is_dir(follow_symlinks=False):
                    pending.append(each.path)
                else:
                    found.append((each.path, *_identity(each.stat(follow_symlinks=False))))
        return sorted(found)

    def _make(self) -> None:
        for folder in (self.out, self.home):
            _remove(folder)
        for each in list(self.root.iterdir()):
            _remove(each)
        shutil.copytree(self._repository, self.root, symlinks=True, dirs_exist_ok=True)
        for path, text in self._files.items():
            if not Path(path).is_relative_to(self.root):
                write(Path(path), text)

    def outside(self) -> tuple[Snapshot, Snapshot]:
        """Return all that no command may change, with the times of every change."""
        return snapshot(self.out), snapshot(self.home)

    def set_up(self, step: Row) -> None:
        match step:
            case {"file": path, "append": text}:
                with Path(path).open("a") as file:
                    file.write(text)
            case {"file": path, "text": text}:
                write(Path(path), text, int(step.get("mode", "644"), 8))
            case {"symlink": path, "to": target}:
                Path(path).symlink_to(target)
            case {"copy_marker_program": path}:
                write(Path(path), f"#!/bin/sh\ntouch {self.out}/marker {self.root}/marker\n", 0o755)
            case _:
                raise AssertionError(f"unknown step {step}")

    def _make_repository(self) -> None:
        for path, text in self._files.items():
            if Path(path).is_relative_to(self.root):
                write(self._repository / Path(path).relative_to(self.root), text)
        git = ["git", "-c", "user.name=a", "-c", "user.email=b"]
        for command in (["init", "-q", "-b", "main", "--template="], ["add", "-A"], ["commit", "-qm", "init"]):
            environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
            subprocess.run([*git, *command], cwd=self._repository, check=True, env=environment)


def _arguments(part: Any) -> list[Any]:
    match part:
        case {"$repeat_arg": [text, length, count]}:
            return [text * length] * count
    return [part]


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_ctime_ns


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


CONFIG: Final = """\
[shell]
timeout_s = {timeout_s}
toolchains = {toolchains}
disk_mb = 64

[limits.shell]
memory_mb = 512
file_mb = 64
processes = 300
"""


class Caller:
    """One `strongroom call --stdin --approve`, and the daemon that it starts for itself."""

    def __init__(self, process: "subprocess.Popen[str]", *, in_copies: bool = False) -> None:
        self.process = process
        self._in_copies = in_copies

    def call(self, tool: str, arguments: Any) -> Answer:
        assert self.process.stdin
        assert self.process.stdout
        began = time.monotonic()
        self.process.stdin.write(json.dumps({"id": 1, "tool": tool, "arguments": arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line)
        content = answer.get("content", answer.get("error"))
        return Answer(answer["ok"], content, line, time.monotonic() - began)

    def processes(self) -> list[int]:
        """Return the pids of all that this has started, however deep."""
        found, rest = [], [self.process.pid]
        while rest:
            tasks = Path(f"/proc/{rest.pop()}/task").glob("*/children")
            below = [int(pid) for task in tasks for pid in _read(task).split()]
            found += below
            rest += below
        return found

    def of_commands(self) -> list[str]:
        """Return the command lines of what commands have started: it is in a PID namespace of a worker's.

        Not what a worker has forked of itself, as one does that is about to be ready, nor what has ended. In copies
        there is no such namespace: it is what is no process of ours.
        """
        if self._in_copies:
            found = (_read(Path(f"/proc/{pid}/cmdline")) for pid in self.processes())
            return [line for line in found if line and _OWN not in line]
        lines = [(_inner_number(pid), _read(Path(f"/proc/{pid}/cmdline"))) for pid in self.processes()]
        workers = {line for number, line in lines if number <= 1}
        return [line for number, line in lines if number > 1 and line not in {*workers, ""}]

    def memory_mb(self) -> int:
        """Return the most memory that the daemon ever had."""
        peaks = [
            re.search(r"VmHWM:\s+(\d+) kB", _read(Path(f"/proc/{pid}/status")))
            for pid in self.processes()
            if _inner_number(pid) == 0
        ]
        return max(int(peak[1]) for peak in peaks if peak) // 1024


_OWN: Final = "__main__ import "
"""In the command line of the daemon and of a worker."""


def _inner_number(pid: int) -> int:
    """Return a process's number in the PID namespace of a worker; 0 where it is in none."""
    numbers = re.search(r"^NSpid:\s+(.*)$", _read(Path(f"/proc/{pid}/status")), re.MULTILINE)
    inner = numbers[1].split() if numbers else []
    return int(inner[-1]) if len(inner) > 1 else 0


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "backslashreplace")
    except OSError:
        return ""


@contextmanager
def calling(
    scene: Scene, profile: str, timeout_s: float, environment: Mapping[str, str], before: Sequence[str] = ()
) -> Iterator[Caller]:
    """Start a daemon whose commands may take `timeout_s`, in an `environment` of its own.

    What stands `before` its command line leaves it no namespaces, so that commands run in copies.
    """
    state = Path(tempfile.mkdtemp(prefix="state-", dir=scene.place))
    found = find_toolchains(("known",), HiddenPlaces(os.path.expanduser("~"), (str(state),)))
    shown = [each for each in dict.fromkeys((*found.path, *found.shown)) if os.path.isdir(each)]
    toolchains = json.dumps([each for each in shown if not os.path.islink(each)])
    (state / "config.toml").write_text(CONFIG.format(timeout_s=timeout_s, toolchains=toolchains))
    strongroom = ForkedStrongroom(state, scene.place, **{"HOME": str(scene.home), **environment})
    command = strongroom.command("call", "--stdin", "--approve", "--profile", profile, "--root", str(scene.root))
    process = subprocess.Popen(
        [*before, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**strongroom.environment, "PYTHONPATH": os.pathsep.join(_LIBRARIES)},
        cwd=CORPUS.parents[1],
        text=True,
    )
    with process:
        try:
            yield Caller(process, in_copies=bool(before))
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(HANG_GUARD)


# --- judging -------------------------------------------------------------------------------------------------------


def arguments(row: Row) -> Any:
    """Return what `exec_shell` is given for a row."""
    if "command" in row:
        return {"command": row["command"]}
    if "line" in row:
        return {"command": row["line"], "args": []}
    if isinstance(row["argv"], str):
        return {"command": row["argv"].split()[0], "args": row["argv"]}
    command, *rest = row["argv"] or [None]
    return {"args": rest} if command is None else {"command": command, "args": rest}


def judge(row: Row, answer: Answer) -> None:
    """Hold an answer against what the row expects."""
    wanted = row["expect"]
    assert wanted not in {"allow", "deny"} or answer.ok is (wanted == "allow"), answer.line
    if not answer.ok and (wanted != "contain" or "kind" in row):
        assert answer.kind in row["kind"], answer.line


class Facts(NamedTuple):
    """What checks look at."""

    scene: Scene
    caller: Caller
    answer: Answer
    row: Row


def _new_files_named(name: str, scene: Scene) -> list[Path]:
    return [path for path in scene.root.rglob(name) if ".git" not in path.parts]


RAN: Final[Mapping[str, Callable[[Any, Facts], bool]]] = {
    "exit_code": lambda value, at: at.answer.content["exit_code"] == value,
    "exit_code_not": lambda value, at: at.answer.content["exit_code"] != value,
    "signal": lambda value, at: at.answer.content.get("signal") == value,
    "stdout_contains": lambda value, at: value in at.answer.text("stdout"),
    "stdout_lacks": lambda value, at: value not in at.answer.text("stdout"),
    "stderr_contains": lambda value, at: value in at.answer.text("stderr"),
    "exists": lambda value, _at: os.path.lexists(value),
    "content": lambda value, _at: Path(value[0]).read_text() == value[1],
}
"""Checks that apply if the command ran."""

ALWAYS: Final[Mapping[str, Callable[[Any, Facts], bool]]] = {
    "absent": lambda value, _at: not os.path.lexists(value),
    "kind": lambda value, at: at.answer.kind == value,
    "max_wall_s": lambda value, at: at.answer.seconds < value,
    "max_result_bytes": lambda value, at: len(at.answer.line) <= value,
    "max_daemon_rss_mb": lambda value, at: at.caller.memory_mb() <= value,
    "max_tree_rss_mb": lambda _value, at: at.answer.kind in ("resource_limit", "timeout"),
    "max_processes": lambda _value, at: at.answer.kind in ("resource_limit", "timeout") or at.answer.ok,
    "max_disk_mb": lambda value, at: sum(each.lstat().st_size for each in at.scene.root.rglob("*")) <= value * 2**20,
    "no_process": lambda value, at: not any(value in line for line in at.caller.of_commands()),
    "no_process_from_run": lambda _value, at: not at.caller.of_commands(),
    "no_new_files_named": lambda value, at: not _new_files_named(value, at.scene),
    "no_canary_connection": lambda _value, at: not at.scene.listener.seen(),
    "child_env_lacks": lambda value, at: value not in environment_of(at.caller),
    "daemon_alive": lambda _value, at: at.caller.call("list_directory", {"path": "."}).ok,
    "outside_metadata_unchanged": lambda _value, _at: True,  # an invariant: it holds after every row
}
"""Checks that apply whatever happened."""


def check(at: Facts) -> None:
    """Hold what is there now against a row's checks."""
    for text in at.row.get("error_contains", []):
        assert text in json.dumps(at.answer.content)
    for checks in at.row.get("checks", []):
        for name, value in checks.items():
            if name in RAN:
                assert not at.answer.ok or RAN[name](value, at), (name, value, at.answer.line[:2000])
            else:
                assert ALWAYS[name](value, at), (name, value, at.answer.line[:2000])


def environment_of(caller: Caller) -> dict[str, str]:
    """Return the environment that commands have."""
    answer = caller.call("exec_shell", {"command": "grep", "args": ["-z", "", "/proc/self/environ"]})
    assert answer.ok, answer.line
    return dict(line.partition("=")[::2] for line in answer.text("stdout").split("\0") if line)
