"""The check of libraries: each is imported for real.

Rule: what is not loaded yet is imported in a Python that is thrown away, so that a library which is broken, hangs or
ends its process costs nothing here; one that takes a second to import and is not needed is only looked for. Results
come as they are found, in the order of the table.
"""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from typing import Final, NamedTuple

import msgspec

from supervisor.categories.row import Library
from supervisor.categories.rows import ROWS
from supervisor.doctor.table import CheckResult

CORE: Final = (
    Library("msgspec", ("msgspec",), "nothing works"),
    Library("trio", ("trio", "trio.lowlevel"), "no worker can be started"),
    Library("outcome", ("outcome",), "no worker can be started"),
)
"""Without one of these doctor cannot try a worker."""

LIBRARIES: Final = (
    *CORE,
    Library("click", ("click",), "there is no command line"),
    Library("prompt-toolkit", ("prompt_toolkit.application", "prompt_toolkit.layout"), "the console does not open"),
    Library("rich", ("rich.console", "rich.markdown"), "the console does not open"),
    Library("pygments", ("pygments.lexers",), "no differences of code are shown"),
    Library("tomlkit", ("tomlkit",), "`strongroom config set` changes nothing"),
    Library("cryptography", ("cryptography.hazmat.primitives.asymmetric.ed25519",), "no session can be proven"),
    *(library for row in ROWS.values() for library in row.libraries),
    Library("anthropic", ("anthropic",), "only offline and scripted models work", slow=True),
)


class LibraryCheck(NamedTuple):
    """A library, its version, and why it cannot be used; "" where it can."""

    library: Library
    version: str
    problem: str


_LONGEST_S: Final = 60
"""For all imports together; a slow disk may need some seconds."""

_EMPTY: Final = "there is a directory of that name without a package in it"

_IMPORT: Final = f"""
import importlib, json, os, signal, sys
signal.alarm({_LONGEST_S})  # which ends it
told = os.dup(1)
os.dup2(2, 1)
sys.dont_write_bytecode = True
sys.path[:] = json.loads(sys.argv[1])
for name in sys.argv[2:]:
    try:
        module = importlib.import_module(name)
        problem = "" if getattr(module, "__file__", None) else {_EMPTY!r}
    except BaseException as error:
        problem = f"{{type(error).__name__}}: {{error}}"[:1000]
    os.write(told, json.dumps([name, problem]).encode() + b"\\n")
"""
"""Tells of each module, a line of JSON each, as soon as it knows; what a library prints goes to standard error."""


def try_libraries(table: Sequence[Library] = LIBRARIES) -> Iterator[LibraryCheck]:
    """Yield each library with what comes of importing it; the first step starts the process that imports."""
    loaded = {name for library in table for name in library.modules if getattr(sys.modules.get(name), "__file__", "")}
    quick = [library for library in table if not library.slow]
    foreign = _imported([name for library in quick for name in library.modules if name not in loaded])
    for library in table:
        version = _version(library.name)
        if library.slow:
            found = [(name, _looked_for(name)) for name in library.modules]
        else:
            found = [next(foreign) for name in library.modules if name not in loaded]
        told = [f"{name}: {problem}" for name, problem in found if problem]
        yield LibraryCheck(library, version, told[0] if told else "" if version or library.modules else "not installed")


def check_libraries(tried: Iterable[LibraryCheck]) -> Iterator[CheckResult]:
    """Say of all that can be used which version there is, and of each other one what it means."""
    tried = list(tried)
    good = [each for each in tried if not each.problem]
    if good:
        yield CheckResult("libraries", "ok", ", ".join(f"{each.library.name} {each.version}".rstrip() for each in good))
    for library, version, problem in (each for each in tried if each.problem):
        what = f"{version} is installed, but cannot be used ({problem})" if version else "not installed"
        again = "--force-reinstall " if version else ""
        advice = f"pip install {again}{library.name}"
        yield CheckResult(library.name, "missing", f"{what}: {library.without}", advice)


def _looked_for(name: str) -> str:
    """Return why a module cannot be there to be imported; "" where it seems to be."""
    spec = importlib.util.find_spec(name)
    return "" if spec is not None and spec.origin is not None else _EMPTY


def _imported(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each module with why it cannot be imported; one that ends the process costs the others nothing."""
    waiting = list(names)
    while waiting:
        process = subprocess.Popen(  # noqa: S603 - our own text
            [sys.executable, "-I", "-c", _IMPORT, json.dumps(sys.path), *waiting],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    name, problem = msgspec.json.decode(line, type=tuple[str, str])
                    waiting.remove(name)
                    yield name, problem
                code = process.wait()
            finally:
                process.kill()
        if waiting:
            yield waiting.pop(0), f"importing it ends Python with {code}, or takes more than {_LONGEST_S} s"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
