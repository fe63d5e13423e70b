"""Take away one line of confinement at a time, in a copy of the tree, and see whether a test fails.

    scripts/locks [WORDS ...]       only the lines whose description holds one of the words
    scripts/locks --list            say which lines there are

Rule: a line that nobody misses is no lock, or has no test. Each is taken away alone; first the tests that are quick and
near run, then the others that should notice; the first failure counts. It ends with 1 where something was not noticed.
Without a lock a worker may reach this machine (it kills every process that it sees, it mounts), so all of it happens in
namespaces of its own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from scripts.locking.taking import Line, lines

TREE: Final = Path(__file__).resolve().parents[2]
AT_ONCE: Final = 2
PATIENCE_S: Final = 100
APART: Final = (
    *("unshare", "--user", "--map-root-user", "--mount", "--pid", "--ipc", "--uts"),
    *("--fork", "--kill-child", "--mount-proc", "timeout", "--signal=KILL", str(PATIENCE_S)),
)


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
        for each in ("strongroom", "supervisor", "workers", "tests"):
            shutil.copytree(TREE / each, copy / each, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(TREE / "pyproject.toml", copy)
        if line:
            (copy / line.site.file).write_text(line.without)
        command = [*APART, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=no", "-rfE", *options]
        command += [f"--basetemp={folder}/temp", *(f"tests/{each}" for each in tests)]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        said = [each.split(" ", 1)[1] for each in done.stdout.splitlines() if each.startswith(("FAILED ", "ERROR "))]
        return tuple(each.partition(" - ")[0] for each in said) or (("",) if done.returncode else ())


def main(words: list[str]) -> int:
    """Take away what is asked for; return the exit code."""
    wanted = [
        line for line in lines(TREE) if not words or words == ["--list"] or any(word in line.what for word in words)
    ]
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
