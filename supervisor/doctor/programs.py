"""`strongroom doctor --root DIR`: what a command in that directory would find, and what not, with the reason.

Rule: it is asked of a real command, on the root read-only: what the root holds of its own runs confined or not at all.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

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
from workers.wire import messages

_QUICK: Final = (
    *(
        "python",
        "python3",
        "pip",
        "pytest",
        "uv",
        "ruff",
        "node",
        "bun",
        "deno",
        "cargo",
        "rustc",
        "ruby",
        "php",
        "perl",
    ),
    *("git", "make", "cmake", "ninja", "gcc", "g++", "clang", "rg", "jq", "sqlite3", "tox", "poetry", "zig"),
)
_SLOW: Final = (
    *("pipx", "conda", "mamba", "hatch", "pdm", "mypy", "npm", "npx", "pnpm", "yarn", "tsc", "go", "gofmt", "java"),
    *(
        "javac",
        "mvn",
        "gradle",
        "kotlin",
        "scala",
        "sbt",
        "bundle",
        "gem",
        "rake",
        "composer",
        "dotnet",
        "elixir",
        "mix",
    ),
    *("erl", "ghc", "cabal", "stack", "swift", "dart", "flutter", "julia", "ocaml", "dune", "nix", "docker", "psql"),
)
"""Whose version is not asked for, as it takes long or is said otherwise."""

_SCRIPT: Final = """
for name in {quick} {slow}; do
    file=$(command -v "$name") || continue
    version=
    case " {quick} " in
    *" $name "*) version=$(timeout 3 "$file" --version 2>&1 | head -n 1 | head -c 80) ;;
    esac
    printf '%s\\t%s\\t%s\\n' "$name" "$file" "$version"
done
"""
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
    rows = [CheckResult(name, "ok", f"{file}  {version}".rstrip()) for name, (file, version) in asked.items()]
    refused = [
        CheckResult(place, "degraded", f"commands do not see it: {why}", _ADVICE if why.startswith("it ") else "")
        for place, why in found.refused
        if place not in {f"{real}/{each}" for each in _OWN}
    ]
    results = [*rows, *_hidden(asked, settings.variable("PATH"), dict(found.refused)), *refused]
    return [as_unicode(each) for each in results]


_ADVICE: Final = (
    "\nA directory of programs alone can be named in `toolchains` of [shell]; move programs out of a directory that "
    "holds settings, or take it out of the PATH."
)


def _hidden(asked: Mapping[str, tuple[str, str]], path: str, refused: Mapping[str, str]) -> Iterator[CheckResult]:
    """Yield the programs that the person's PATH has and a command does not find."""
    for name in (*_QUICK, *_SLOW):
        file = "" if name in asked else shutil.which(name, path=path) or ""
        if file:
            why = refused.get(os.path.dirname(file)) or refused.get(file) or "what it needs is not shown, see below"
            yield CheckResult(name, "degraded", f"{file} is not found by commands: {why}")


async def _ask(settings: Settings, root: str, has: Surroundings) -> dict[str, tuple[str, str]] | CheckResult:
    """Return what a command finds: by name, the file and the version; or why there is no command."""
    spec = child_spec(settings, Profile("doctor", root, (), writable=False, surroundings=has), "shell")
    script = _SCRIPT.format(quick=" ".join(_QUICK), slow=" ".join(_SLOW))
    arguments = msgspec.json.encode({"command": script, "timeout_s": _TIMEOUT_S})
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
    lines = (line.split("\t") for line in msgspec.json.decode(answer.content)["stdout"].splitlines())
    return {each[0]: (one_line(each[1], 300), one_line(each[2], 80)) for each in lines if len(each) == 3}  # noqa: PLR2004
