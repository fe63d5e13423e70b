"""Installers: the commands of package managers that fetch packages.

Rule: data, and pure functions over it. A command that is not understood installs nothing here: it is asked about when
it has tried the network.
"""

import posixpath
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from supervisor.rules.rule import Rule
from supervisor.rules.started_programs import HARMLESS, simple_commands
from supervisor.system.lock_files import Locked


class _Installer(NamedTuple):
    """Package managers of one registry whose subcommands have the same names."""

    registry: str
    programs: str
    """A pattern."""
    subcommands: str
    """Each of one or two words that fetch packages, with commas between; "" stands for none at all."""
    locked: str = ""
    """The same of those that fetch what a lock file names, where it is not here; "x ." is x with no more words."""
    builds: str = ""
    """The same of those of them that run what they have fetched."""
    seldom: str = ""
    """The same of those that mostly have all that they need: asked about only once they have tried the network."""


_NPX: Final = "npx"
_INSTALLERS: Final = (
    _Installer(
        *("npm", "npm", "install,i,in,add,it,install-test,update,up,upgrade,dedupe,import"),
        locked="install .,i .,in .,add .,ci,clean-install,ic",
    ),
    _Installer("npm", "pnpm", "install,i,add,ci,it,install-test,update,up,upgrade,dedupe,import,dlx", builds="dlx"),
    _Installer("npm", "yarn|yarnpkg", ",install,add,up,upgrade,dedupe,dlx", builds="dlx"),
    _Installer("npm", "bun", "install,i,add,a,ci,update"),
    _Installer("npm", "npx|bunx", "", locked="*", builds="*"),
    _Installer("pypi", r"pip[0-9.]*", "install,download,wheel"),
    _Installer(
        *("pypi", "uv", "add,lock,pip install,pip sync,pip compile,tool install,tool run"),
        *("sync,run", "run,tool run"),
    ),
    _Installer("pypi", "uvx", "*", builds="*"),
    _Installer("pypi", "tox|nox|hatch|build|pyproject-build", "", builds=",*", seldom=",*"),
    _Installer("pypi", "pipx", "install,run,upgrade,inject", builds="run"),
    _Installer("pypi", "poetry|pdm", "add,update,lock", "install,sync"),
    _Installer("pypi", "pipenv", "install,add,update,lock,sync"),
    _Installer(
        *("crates", "cargo", "add,update,install,generate-lockfile,vendor"),
        *("fetch,build,b,test,t,run,r,check,c,bench,doc,d,clippy,rustc,fix,tree,metadata,nextest run",),
        "build,b,test,t,run,r,check,c,bench,doc,d,clippy,rustc,fix,nextest run",
    ),
    _Installer(
        *("go", "go", "get,install,mod tidy,mod vendor"),
        *("mod download,build,test,run,vet,list,generate", "build,test,run,vet,generate"),
    ),
    _Installer("rubygems", r"bundler?", "add,update,lock,outdated", ",install,i,cache,package"),
    _Installer("rubygems", r"gem[0-9.]*", "install,i,update,fetch"),
    _Installer(
        *("packagist", r"composer(?:\.phar)?", "require,req,r,update,u,upgrade,create-project,outdated"),
        locked="install,i",
    ),
)
"""Sources: each program's own help."""

_OFFLINE: Final = frozenset(["--offline", "--local", "--no-index", "--no-install", "--no", "--help", "-h", "--version"])
_VARIABLE: Final = r"(?!(?i:\w*(?:path|proxy|registry|index|config|prefix|preload|home)))[A-Za-z_]\w*=[\w.,:/@+-]*"
"""It says nothing of what is fetched from where."""
_LEAD: Final = rf"{_VARIABLE}|env|time|nice|command|timeout(?: -[ks] ?\w+| --[a-z-]+(?:=\w+)?)* [0-9.]+[smhd]?"
LEADS: Final = re.compile(rf"(?:{_LEAD})(?: (?:{_LEAD}))*")
ASIDES: Final = re.compile(
    rf"export(?: {_VARIABLE})+|set(?: [-+][eux]+| [-+][eux]*o pipefail)+|deactivate"
    r"|(?:source|\.) (?!\S*\.\./)(?:[\w.+-]+/)*bin/activate"
)
"""Commands after which the rest is what it says: the environment is the root's, as its programs are."""
_READERS: Final = frozenset(["cat", "cut", "grep", "head", "ls", "tail", "tr", "wc"])
"""They write nothing but what they print, and no directory of the root may hold them (`workers.shell.own_programs`)."""
_MORE: Final = frozenset(["--with", "--with-requirements", "--from", "--upgrade", "-U"])
"""What makes uv fetch more than a lock file names."""
_AT_ONCE: Final = 8
"""Commands in one line that fetch: of more, nothing is understood."""
_LONGEST: Final = 1024
"""Characters of a place."""
_CLEAN: Final = frozenset(["ci", "clean-install", "ic"])
_YES: Final = frozenset(["-y", "--yes", "-q", "--quiet"])
_PYTHON: Final = re.compile(r"python[0-9.]*|pypy[0-9.]*")


class Fetch(NamedTuple):
    """One simple command that fetches packages."""

    registry: str
    program: str
    """As it was written."""
    command: str
    """For people."""
    locked: Locked | None
    """What it fetches only where it is not here; None where it fetches whatever is here."""
    builds: bool
    seldom: bool = False


class Install(NamedTuple):
    """What a command installs, as its text says."""

    registries: tuple[str, ...]
    programs: tuple[str, ...]
    command: str
    """The first one's words, for people."""
    alone: bool
    """Nothing else is run beside it."""
    locked: tuple[Locked, ...] = ()
    """What it fetches only where it is not here."""
    always: bool = True
    """It fetches whatever is here."""
    builds: bool = False
    """It runs what it has fetched: what it prints is not a package manager's alone."""
    piped: bool = False
    """That it exits with 0 may say nothing of it."""
    started: bool = False
    """Another program starts it: what fails may be that, and what it left is judged as any command's."""


def install_of(tool: str, arguments: str) -> Install | None:
    """Return what a call installs; None where it is no install, or is not understood. `arguments` are raw JSON."""
    commands = simple_commands(tool, arguments, LEADS, ASIDES)
    found: list[Fetch] = []
    others, place = 0, ""
    for words in commands or ():
        if fetch := fetch_of(words, place):
            found.append(fetch)
        elif words[0] == "cd":
            place = joined(place, words[1:])
        else:
            others += words[0] not in HARMLESS and words[0] not in _READERS
    install = install_by(found, alone=not others) if len(found) <= _AT_ONCE else None
    return install._replace(piped="|" in arguments) if install is not None else None


def install_by(found: Sequence[Fetch], *, alone: bool) -> Install | None:
    """Return what commands install together; None where there are none."""
    if not found:
        return None
    registries, programs = (tuple(dict.fromkeys(column)) for column in list(zip(*found, strict=True))[:2])
    locked = tuple(each.locked for each in found if each.locked is not None)
    always = any(each.locked is None and not each.seldom for each in found)
    return Install(registries, programs, found[0].command, alone, locked, always, any(each.builds for each in found))


def fetch_of(words: Sequence[str], place: str) -> Fetch | None:
    """Return what a simple command fetches, in a place of the root; None where it fetches nothing that is known."""
    program, rest = words[0].rpartition("/")[2], list(words[1:])
    if _PYTHON.fullmatch(program) and rest[:1] == ["-m"] and len(rest) > 1:
        program, rest = rest[1], rest[2:]
    return _fetch(program, rest, words[0], place)


def joined(place: str, words: Sequence[str]) -> str:
    """Return where `cd` leads, relative to the root; what is not known stays where it was."""
    to = posixpath.normpath(posixpath.join(place, words[0])) if len(words) == 1 else place
    return (
        place
        if to.startswith(("/", "..")) or len(to) > _LONGEST
        else to.removeprefix(".").removeprefix("/")
        if to == "."
        else to
    )


def _fetch(program: str, words: Sequence[str], written: str, place: str) -> Fetch | None:
    """Return what a simple command fetches; None where it fetches nothing, or that is not understood."""
    if not _OFFLINE.isdisjoint(words) or [*words] == ["-v"]:
        return None
    plain = [word for word in words if not word.startswith(("-", "+"))]
    for row in _INSTALLERS:
        if not re.fullmatch(row.programs, program):
            continue
        named = {" ".join(plain[:number]) for number in (1, 2)} | ({"*"} if plain else set())
        no_more = {f"{plain[0]} ."} if len(plain) == 1 else set()
        if row.locked == "*" and plain and plain[0][:1] in ("", ".", "/"):
            return None  # a program by its path
        command, builds = " ".join((program, *plain[:1])), bool(row.builds and named & {*row.builds.split(",")})
        if row.locked and (named | no_more) & {*row.locked.split(",")}:
            return Fetch(row.registry, written, command, _locked(row, program, plain, words, place), builds)
        if seldom := bool(row.seldom and named & {*row.seldom.split(",")}):
            return Fetch(row.registry, written, command, None, builds, seldom)
        if row.subcommands and named & {*row.subcommands.split(",")}:
            return Fetch(row.registry, written, command, None, builds)
    return None


def _locked(row: _Installer, program: str, plain: Sequence[str], words: Sequence[str], place: str) -> Locked | None:
    if row.locked == "*":
        by_name = not words[0].startswith("-") or words[0] in _YES
        return Locked(_NPX, place, program, plain[0]) if by_name and "/" not in plain[0] else None
    if row.registry == "pypi" and not _MORE.isdisjoint(words):
        return None
    first = plain[0] if plain else ""
    outputs = _outputs(words, place) if row.registry == "go" and first == "build" else ()
    return Locked(row.registry, place, f"{program} {first}", clean=first in _CLEAN, outputs=outputs)


def _outputs(words: Sequence[str], place: str) -> tuple[str, ...]:
    """Return what `go build` may write: what it is told, or else what a directory of the words is called."""
    found = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-o"]
    found = found or [posixpath.basename(word) for word in words[1:] if word.startswith(".")]
    paths = [posixpath.normpath(posixpath.join(place, each)) for each in found]
    return tuple(each for each in paths if not each.startswith(("/", "..")))


# --- rules ------------------------------------------------------------------------------------------------------------


def covers(rule: Rule, install: Install) -> bool:
    """Say whether a rule that allows installs covers this one."""
    return (
        rule.decision == "allow"
        and install.alone
        and {*install.registries} <= {*(rule.registries or ())}
        and (rule.programs is None or {*install.programs} <= {*rule.programs})
    )
