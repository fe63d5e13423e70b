"""Take away one line of confinement at a time, in a copy of the tree, and see whether a test fails.

    .venv/bin/python scripts/locks.py [WORDS ...]       only the lines whose description holds one of the words
    .venv/bin/python scripts/locks.py --list            say which lines there are

Rule: a line that nobody misses is no lock, or has no test. Each is taken away alone; first the tests that are quick and
near run, then the others that should notice; the first failure counts. It ends with 1 where something was not noticed.
Without a lock a worker may reach this machine (it kills every process that it sees, it mounts), so all of it happens in
namespaces of its own.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

TREE: Final = Path(__file__).resolve().parents[1]
AT_ONCE: Final = 2
PATIENCE_S: Final = 100
APART: Final = (
    *("unshare", "--user", "--map-root-user", "--mount", "--pid", "--ipc", "--uts"),
    *("--fork", "--kill-child", "--mount-proc", "timeout", "--signal=KILL", str(PATIENCE_S)),
)


class Site(NamedTuple):
    """Where lines of confinement stand, and who should notice that one is gone."""

    file: str
    names: tuple[str, ...]
    """The constants and functions to look into, or "*"."""
    kind: str
    """What is taken away: `rows` of tuples, `flags` of sums by |, `conditions` of a call, `acts`: statements."""
    tests: tuple[str, ...]


CONFINE: Final = ("confine/test_seccomp.py", "confine/test_doors.py", "confine/test_room.py")
FAILS: Final = (
    "confine/test_room.py",
    "confine/test_fails_closed.py",
    "confine/test_doors.py",
    "confine/test_death.py",
)
SHELL: Final = ("shell/test_locks.py", "shell/test_fails_closed.py", "shell/test_commands.py", "shell/test_life.py")
PROXY: Final = ("shell/test_proxy_locks.py", "shell/test_proxy.py", "shell/test_limits.py")
WHERE: Final = ("confine/test_namespaces.py",)
OTHERS: Final = ("search/test_doors.py", "web/test_doors.py", "restore/test_doors.py", "shell/test_locks.py")

SITES: Final = (
    Site("confine/policy.py", ("*",), "conditions", (*CONFINE, *OTHERS, "shell/test_proxy_locks.py")),
    Site("confine/policy.py", ("SEARCH", "WEB"), "flags", (*WHERE, "search/test_doors.py", "web/test_doors.py")),
    Site("confine/commands.py", ("*",), "rows", ("confine/test_denylist.py", "shell/test_locks.py")),
    Site("confine/order.py", ("STEPS",), "rows", (*FAILS, *OTHERS)),
    Site("confine/landlock.py", ("handled", "restrict"), "acts", (*FAILS, "shell/test_proxy.py")),
    Site("confine/limits.py", ("limit",), "rows", ("confine/test_room.py", *SHELL)),
    Site(
        "confine/privileges.py", ("*",), "acts", (*FAILS, *OTHERS, "shell/test_fails_closed.py", "shell/test_life.py")
    ),
    Site(
        "confine/namespaces.py",
        ("*",),
        "acts",
        (*WHERE, *SHELL, "shell/test_proxy.py", "restore/test_doors.py", "search/test_life.py"),
    ),
    Site("confine/namespaces.py", ("EVERYTHING",), "flags", WHERE),
    Site("shell/steps.py", ("WORKER", "COMMAND", "PROXY"), "rows", (*SHELL, *PROXY)),
    Site("shell/steps.py", ("_sandbox", "_descriptors", "_rlimits", "_all_capabilities"), "acts", (*SHELL, *PROXY)),
    Site("shell/layout.py", ("build", "_show", "_mount_proc"), "acts", (*SHELL, *WHERE, "shell/test_proxy.py")),
    Site("shell/layout.py", ("build", "_show", "_mount_proc"), "flags", SHELL),
    Site("shell/places.py", ("arrange",), "acts", (*SHELL, "shell/test_rehearsed.py")),
    Site("shell/places.py", ("arrange", "rules", "_READ", "_USE"), "flags", SHELL),
    Site("shell/command.py", ("_lock_in",), "acts", (*SHELL, "shell/test_limits.py")),
    Site("restore/ready.py", ("_leave",), "acts", (*WHERE, "restore/test_doors.py", "restore/test_undo.py")),
    Site("restore/ready.py", ("_leave", "_NAMESPACES", "_PLAIN"), "flags", (*WHERE, "restore/test_doors.py")),
    Site(
        "__main__.py",
        ("run",),
        "acts",
        ("confine/test_death.py", "confine/test_room.py", "shell/test_fails_closed.py", "test_loop.py"),
    ),
)


NO_LOCKS: Final = (
    *("kernel.keep_heap()", "gc.freeze()", "gc.enable()", "shown.append(path)"),
    *("os.makedirs(_BASE + os.path.dirname", "os.O_PATH", "os.O_CLOEXEC"),
)
"""What stands among them for speed, or to make what follows possible."""


class Line(NamedTuple):
    """One line of confinement: what it is, and the file's text without it."""

    site: Site
    what: str
    without: str


def lines() -> Iterator[Line]:
    """Find all of them."""
    for site in SITES:
        text = (TREE / "workers" / site.file).read_text()
        for place in _places(ast.parse(text), site.names):
            for node, instead in _TAKES[site.kind](place):
                source = ast.get_source_segment(text, node) or ""
                if source.startswith(NO_LOCKS):
                    continue
                where = f"{site.file}:{node.lineno}"
                yield Line(site, f"{where} {' '.join(source.split())[:70]}", _without(text, node, instead))


def _places(tree: ast.Module, names: tuple[str, ...]) -> Iterator[ast.stmt]:
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        name = target.id if isinstance(target, ast.Name) else getattr(node, "name", "")
        if name in names or ("*" in names and isinstance(node, ast.AnnAssign | ast.FunctionDef)):
            yield node


Taken = Iterator[tuple[ast.expr | ast.stmt, str]]


def _rows(place: ast.stmt) -> Taken:
    """Calls, pairs and names of calls that stand in a tuple; not of what a confinement opens."""
    opens = [each.value for each in ast.walk(place) if isinstance(each, ast.keyword) and each.arg == "opens"]
    apart = {id(node) for each in opens for node in ast.walk(each)}
    for node in ast.walk(place):
        if id(node) in apart:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_shared":
            yield from ((each, "") for each in node.args)
        if not isinstance(node, ast.Tuple):
            continue
        for each in node.elts:
            a_call = isinstance(each, ast.Constant) and isinstance(each.value, str) and _only_names(node)
            if a_call or _is_row(each):
                yield each, ""


def _only_names(node: ast.Tuple) -> bool:
    return all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.elts)


def _is_row(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("Deny", "Allow", "Notify")
    pair = isinstance(node, ast.Tuple) and len(node.elts) in (2, 3)
    named = pair and isinstance(node.elts[0], ast.Constant | ast.Attribute)  # type: ignore[attr-defined]
    return named or (isinstance(node, ast.Name) and node.id.startswith("NO_"))


def _flags(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            yield from ((each, "0") for each in (node.left, node.right) if isinstance(each, ast.Name | ast.Attribute))


def _conditions(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Allow":
            yield from ((each, "()") for each in node.args[1:])


def _acts(place: ast.stmt) -> Taken:
    for node in ast.walk(place):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, "pass"


_TAKES: Final = {"rows": _rows, "flags": _flags, "conditions": _conditions, "acts": _acts}


def _without(text: str, node: ast.expr | ast.stmt, instead: str) -> str:
    rows = text.splitlines(keepends=True)
    begin = sum(len(row.encode()) for row in rows[: node.lineno - 1]) + node.col_offset
    end = sum(len(row.encode()) for row in rows[: (node.end_lineno or 0) - 1]) + (node.end_col_offset or 0)
    raw = text.encode()
    if not instead and raw[end : end + 1] == b",":
        end += 1
    return (raw[:begin] + instead.encode() + raw[end:]).decode()


def noticed(line: Line, known: dict[str, tuple[str, ...]]) -> str:
    """Return the first test that fails without the line; none if all pass. `known` are failures with the line."""
    tests = [each for each in line.site.tests if "" not in known[each]]
    apart = [f"--deselect={test}" for each in tests for test in known[each]]
    failed = run(tests, ["-x", *apart], line)
    return failed[0] or "it never ended" if failed else ""


def run(tests: list[str], options: list[str], line: Line | None = None) -> tuple[str, ...]:
    """Return which tests fail in a copy of the tree; one without a name where they never end."""
    with tempfile.TemporaryDirectory(prefix="strongroom-locks-") as folder:
        copy = Path(folder) / "tree"
        for each in ("supervisor", "workers", "tests"):
            shutil.copytree(TREE / each, copy / each, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(TREE / "pyproject.toml", copy)
        if line:
            (copy / "workers" / line.site.file).write_text(line.without)
        command = [*APART, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=no", "-rfE", *options]
        command += [f"--basetemp={folder}/temp", *(f"tests/workers/{each}" for each in tests)]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        said = [each.split(" ", 1)[1] for each in done.stdout.splitlines() if each.startswith(("FAILED ", "ERROR "))]
        return tuple(each.partition(" - ")[0] for each in said) or (("",) if done.returncode else ())


def main(words: list[str]) -> int:
    """Take away what is asked for; return the exit code."""
    wanted = [line for line in lines() if not words or words == ["--list"] or any(word in line.what for word in words)]
    if words == ["--list"]:
        print("\n".join(line.what for line in wanted))
        return 0
    if subprocess.run([*APART, "true"], check=False).returncode:
        print("There are no namespaces to be had here, and without them this is not safe.")
        return 2
    files = sorted({test for line in wanted for test in line.site.tests})
    missed = 0
    with ThreadPoolExecutor(AT_ONCE) as several:
        known = dict(zip(files, several.map(lambda file: run([file], []), files), strict=True))
        for file, failures in known.items():
            for failure in failures:
                print(f"left out {failure or file}: it fails there with all lines in place", flush=True)
        for line, by in zip(wanted, several.map(lambda line: noticed(line, known), wanted), strict=True):
            missed += not by
            print(f"{'noticed ' if by else 'NOT SEEN'} {line.what}\n         {by or 'no test failed'}", flush=True)
    print(f"{len(wanted)} lines taken away, {missed} not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
