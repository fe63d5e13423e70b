"""`strongroom doctor --root DIR`: what a command in that directory would find, and what not, with the reason.

Rule: it is asked of a real command, on the root read-only: what the root holds of its own runs confined or not at all.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
import trio

from supervisor.categories.row import Surroundings
from supervisor.categories.shell import survey_programs
from supervisor.config.own_places import refuse_own_places
from supervisor.config.profiles import Profile
from supervisor.config.repositories import real_directory
from supervisor.config.settings import Settings
from supervisor.display.escape import one_line
from supervisor.doctor.checks import as_unicode
from supervisor.doctor.table import CheckResult
from supervisor.errors import ConfigError, WorkerError
from supervisor.pool.pools import Pools
from supervisor.session.child_specs import child_spec
from workers.shell.command_line import SYSTEM_PATH
from workers.wire import messages

_NAMES: Final = (
    *("python", "python3", "pip", "pytest", "uv", "pipx", "conda", "mamba", "poetry", "hatch", "pdm", "tox", "ruff"),
    *("mypy", "node", "npm", "npx", "pnpm", "yarn", "bun", "deno", "tsc", "cargo", "rustc", "go", "java"),
    *("javac", "mvn", "gradle", "kotlin", "scala", "sbt", "ruby", "bundle", "gem", "rake", "php", "composer", "perl"),
    *("dotnet", "elixir", "mix", "erl", "ghc", "cabal", "stack", "swift", "dart", "flutter", "julia", "ocaml", "dune"),
    *("zig", "git", "make", "cmake", "ninja", "gcc", "g++", "clang", "rg", "jq", "sqlite3", "psql", "docker", "nix"),
)
"""Programs of a day's work, by language."""

_ASKED_BY: Final[Mapping[str, str]] = MappingProxyType(
    {"go": "version", "java": "-version", "erl": "-noshell -eval halt(). -version"}
)
"""What makes a program tell its version, where that is not --version."""

_SCRIPT: Final = """
ask() {{
    file=$(command -v "$1") || return
    shift
    said=$(timeout 5 "$file" "$@" < /dev/null 2>&1)
    code=$?
    line=$(printf '%s' "$said" | grep -a -m 1 "$([ $code = 0 ] && echo '[0-9]' || echo .)" | head -c 200 | tr '\\t' ' ')
    printf 'P\\t%s\\t%s\\t%s\\n' "$file" "$code" "$line"
}}
{asks}
wait
IFS=:
for directory in $PATH; do
    set -- "$directory"/*
    printf 'D\\t%s\\t' "$directory"
    for file in "$@"; do [ -f "$file" ] && [ -x "$file" ] && printf '%s ' "${{file##*/}}"; done
    echo
done
"""
_AT_ONCE: Final = 8
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_VERSION: Final = re.compile(r"[0-9]+\.[0-9][A-Za-z0-9.+~-]{0,60}")
_NOT_STARTED: Final = ("126", "127")
_TOLD: Final = 8
"""Names of programs in one directory that are listed."""
_OWN: Final = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Of the root, which come first in any case: a person who has activated them has them in the PATH as well."""
_TIMEOUT_S: Final = 60.0


def check_programs(settings: Settings, root: str) -> list[CheckResult]:
    """Return a row for each program that commands in `root` find, or would not find though the person does.

    Raises:
        ConfigError: the root cannot be used, or a variable of `[shell]` may not be given there.
    """
    real, problem = real_directory(Path(root))
    if problem:
        raise ConfigError(f"The root {root!r} {problem}. Name another with --root.")
    refuse_own_places(settings, str(real), writable=False)
    found = survey_programs(settings.config, settings.locations, str(real), settings.person)
    asked = trio.run(_ask, settings, str(real), found.surroundings)
    if isinstance(asked, CheckResult):
        return [asked]
    refused = [
        CheckResult(
            place,
            "degraded",
            f"commands do not see it: {why}{_programs_in(place)}",
            _ADVICE if why.startswith("it ") else "",
        )
        for place, why in found.refused
        if place not in {f"{real}/{each}" for each in _OWN} and not why.endswith(_NOT_THERE)
    ]
    missing = [place for place, why in found.refused if why.endswith(_NOT_THERE)]
    if missing:
        refused.append(CheckResult("not there", "ok", f"Nothing is lost by them: {_listed(missing)}."))
    hidden = _hidden(asked.programs, settings.variable("PATH"), dict(found.refused))
    return [as_unicode(each) for each in (*asked.programs.values(), *asked.directories, *hidden, *refused)]


def _programs_in(place: str) -> str:
    """Return a sentence about what the person finds in a place that no command sees."""
    try:
        with os.scandir(place) as entries:
            names = sorted(each.name for each in entries if each.is_file() and os.access(each.path, os.X_OK))
    except (OSError, ValueError):
        return ""
    return f". Not found there: {_listed(names)}." if names else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return ", ".join(one_line(each, 60) for each in names[:_TOLD]) + more


_NOT_THERE: Final = " is not there"
_ADVICE: Final = (
    "\nA directory of programs alone can be named in `toolchains` of [shell]; move programs out of a directory that "
    "holds settings, or take it out of the PATH."
)


def _hidden(asked: Mapping[str, CheckResult], path: str, refused: Mapping[str, str]) -> Iterator[CheckResult]:
    """Yield the programs that the person's PATH has and a command does not find."""
    for name in _NAMES:
        file = "" if name in asked else shutil.which(name, path=path) or ""
        if file:
            why = refused.get(os.path.dirname(file)) or refused.get(file) or "what it needs is not shown, see below"
            yield CheckResult(name, "degraded", f"{file} is not found by commands: {why}")


class _Answer(NamedTuple):
    """What a command finds."""

    programs: dict[str, CheckResult]
    """By name, in their order."""
    directories: list[CheckResult]
    """Those besides the system's."""


async def _ask(settings: Settings, root: str, has: Surroundings) -> _Answer | CheckResult:
    """Return what a command finds; or why there is no command."""
    spec = child_spec(settings, Profile("doctor", root, (), writable=False, surroundings=has), "shell")
    asks = [f"ask {name} {shlex.join(_ASKED_BY.get(name, '--version').split())} &" for name in _NAMES]
    waves = ["\n".join(asks[at : at + _AT_ONCE]) for at in range(0, len(asks), _AT_ONCE)]
    arguments = msgspec.json.encode({"command": _SCRIPT.format(asks="\nwait\n".join(waves)), "timeout_s": _TIMEOUT_S})
    async with trio.open_nursery() as nursery:
        pools = Pools(root, lambda _category: spec, nursery)
        try:
            answer = await pools.pool("shell").call("run_cmd", arguments, effect=False, timeout=_TIMEOUT_S + 10)
            told = answer.message if isinstance(answer, messages.Failed) else ""
        except WorkerError as error:
            told = await pools.refusal("shell") or str(error)
        finally:
            await pools.close()
            nursery.cancel_scope.cancel()
    if told or not isinstance(answer, messages.Done):
        return CheckResult("commands", "missing", f"none can be run: {told}", "Run `strongroom doctor`.")
    return _read(msgspec.json.decode(answer.content)["stdout"])


def _read(told: str) -> _Answer:
    programs, directories = {}, []
    for line in told.splitlines():
        match line.split("\t"):
            case ["P", file, code, said]:
                name = os.path.basename(file)
                programs[name] = _program(name, one_line(file, 300), code, said)
            case ["D", directory, names] if directory not in SYSTEM_PATH and names.split():
                found = f"Found there: {_listed(names.split())}."
                directories.append(CheckResult(one_line(directory, 300), "ok", found))
            case _:
                pass
    return _Answer({name: programs[name] for name in _NAMES if name in programs}, directories)


def _program(name: str, file: str, code: str, said: str) -> CheckResult:
    if code in _NOT_STARTED:
        return CheckResult(name, "degraded", f"{file} does not start: {one_line(said, 200)}")
    found = _VERSION.search(_COLOURS.sub("", said)) if code == "0" else None
    return CheckResult(name, "ok", f"{found[0] if found else 'version unknown'}  {file}")
