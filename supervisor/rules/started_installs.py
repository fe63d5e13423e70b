"""Installs that a command starts by another name: by a recipe of make, a package's script, or a shell script.

Rule: a look, deny by default: what is not understood installs nothing here, and is asked about when it has tried the
network. What fetches whatever is here counts only where the place has no packages yet: else it may want nothing. Files
are read up to a size, also all together, and lines up to a number: anybody may have written them. Blocks.
"""

import glob
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, NamedTuple

from supervisor.rules.installers import ASIDES, LEADS, Fetch, Install, fetch_of, install_by, joined
from supervisor.rules.started_programs import commands_of_line, simple_commands
from supervisor.system.project_files import ProjectFiles, TooMuchError

_LARGEST: Final = 2**17
_TOGETHER: Final = 2**18
"""Bytes of one file, and of all, each as often as it is read."""
_LINES: Final = 300
_DEEPEST: Final = 4
_AT_ONCE: Final = 8
"""Commands that fetch, the first ones."""
_LONGEST: Final = 4096
_USES: Final = 64
"""Characters of a line once its variables are in it, and of those, or of targets, in it."""
_TARGETS: Final = 2**12
_PLAIN: Final = 2**14
"""Characters of a line that a shell reads."""
_MAKES: Final = frozenset({"make", "gmake"})
_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
_PACKAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_SHELLS: Final = frozenset({"sh", "bash", "dash"})
_SCRIPT: Final = re.compile(r"#![^\n]{0,60}\b(?:ba|da)?sh\b")

_RULE: Final = re.compile(r"([^\s:=#][^:=#\t]{0,200}?)[ ]?::?(?!=)([^\n#;=]{0,2000})")
_VARIABLE: Final = re.compile(r"(?:export[ \t]+)?(\w{1,60})[ \t]*[:?]{0,2}=[ \t]*([^\n#]{0,500})")
_USE: Final = re.compile(r"\$(?:\((\w{1,60})\)|\{(\w{1,60})\})")

_PARTS: Final = re.compile(r"[;&|(){}]+|\b(?:then|else|do|if|elif|while|until)\b")
_PACKAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "npm": ("node_modules", ".pnp.cjs"),
        "pypi": ("*/pyvenv.cfg", ".*/pyvenv.cfg"),
        "rubygems": ("vendor/bundle",),
        "packagist": ("vendor",),
    }
)
"""Registry -> patterns of what is there where packages are; of others the lock files say it."""


def started_install(tool: str, arguments: str, root: str, *, lacks: bool = False) -> Install | None:
    """Return what a call installs by what it starts; None where that is nothing, or is not understood.

    Args:
        tool: of the call.
        arguments: raw JSON.
        root: a path that leads to the root.
        lacks: it has shown that something is not here.
    """
    commands = simple_commands(tool, arguments, LEADS, ASIDES)
    if not commands:
        return None
    walk = _RecipeWalk(root)
    place = starter = ""
    with suppress(TooMuchError):
        for words in commands:
            place = walk.run([words], place, 0)
            starter = starter or " ".join(words[:2]) * bool(walk.found)
    first = list(dict.fromkeys(walk.found))[:_AT_ONCE]
    found = [each for each in first if lacks or each[0].locked is not None or not _has_packages(root, *each)]
    install = install_by([fetch for fetch, _place in found], alone=False)
    if install is None:
        return None
    named = f"{starter}, which starts {install.command},"
    return install._replace(command=named, always=install.always and not lacks, started=True)


def starts_others(tool: str, arguments: str) -> bool:
    """Say whether a call starts what only files of the root tell."""
    commands = simple_commands(tool, arguments, LEADS, ASIDES) or ()
    return any("/" in words[0] or words[0] in _MAKES | _PACKAGERS | _SHELLS for words in commands)


def _has_packages(root: str, fetch: Fetch, place: str) -> bool:
    patterns = [f"{glob.escape(at)}/{each}" for at in {place, ""} for each in _PACKAGES.get(fetch.registry, ())]
    return not patterns or any(glob.glob(each.lstrip("/"), root_dir=root) for each in patterns)


class _MakeRule(NamedTuple):
    """What a rule of a Makefile needs first, and its lines, each as it is written."""

    needs: str
    recipe: list[str]


class _RecipeWalk:
    """Through what one command starts."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._left = _LINES
        self._files = ProjectFiles(_TOGETHER)
        self.found: list[tuple[Fetch, str]] = []
        """What is fetched, each with the place where."""

    def run(self, commands: Iterable[Sequence[str]], place: str, depth: int) -> str:
        """Follow simple commands; return where the last one leaves a shell."""
        for words in commands:
            if words[0] == "cd":
                place = joined(place, words[1:])
            elif fetch := fetch_of(words, place):
                self.found.append((fetch, place))
            elif depth < _DEEPEST:
                at = place
                for line, stays in self._lines(words, place):
                    self._left -= 1
                    if self._left < 0:
                        return place
                    then = self.run(_commands(line), at, depth + 1)
                    at = then if stays else at
        return place

    def _lines(self, words: Sequence[str], place: str) -> Iterator[tuple[str, bool]]:
        """Yield the lines that a simple command has a shell read, and whether the next is read by the same one."""
        program = words[0].rpartition("/")[2]
        if program in _MAKES:
            yield from ((line, False) for line in self._recipes(words[1:], place))
        elif program in _PACKAGERS:
            yield from ((line, False) for line in self._scripts(words[1:], place))
        elif program in _SHELLS and len(words) > 2 and re.fullmatch(r"-[a-z]*c", words[1]):  # noqa: PLR2004 - a text
            yield from ((line, True) for line in words[2].splitlines())
        else:
            names = [each for each in words[1:] if not each.startswith("-")] if program in _SHELLS else [words[0]]
            text = self._text(place, names[0]) if names else ""
            if program in _SHELLS or _SCRIPT.match(text):
                yield from ((line, True) for line in text.replace("\\\n", " ").splitlines())

    def _text(self, place: str, name: str) -> str:
        path = posixpath.normpath(posixpath.join(place, name))
        return "" if path.startswith(("/", "..")) else self._files.text(f"{self._root}/{path}", _LARGEST)

    def _scripts(self, words: Sequence[str], place: str) -> Iterator[str]:
        plain = [each for each in words if not each.startswith("-")]
        name = plain[1] if len(plain) > 1 and plain[0] in {"run", "run-script"} else "".join(plain[:1])
        name = "test" if name == "t" else name
        with suppress(ValueError, RecursionError, AttributeError):
            scripts = json.loads(self._text(place, "package.json") or "{}").get("scripts", {})
            yield from (str(scripts[each]) for each in (f"pre{name}", name, f"post{name}") if name and each in scripts)

    def _recipes(self, words: Sequence[str], place: str) -> Iterator[str]:
        """Yield the lines of the recipes that make runs, in their order, as far as they are written plainly."""
        if "-C" in words[:-1] or any(each.startswith(("-f", "--file", "--dir")) for each in words):
            return
        text = next(filter(None, (self._text(place, each) for each in _MAKEFILES)), "").replace("\\\n", " ")
        rules: dict[str, list[_MakeRule]] = {}
        values, last = {"MAKE": "make"}, _MakeRule("", [])
        for line in text.splitlines():
            if line.startswith("\t"):
                last.recipe.append(line.strip().lstrip("@-+ "))
            elif found := _VARIABLE.fullmatch(line.strip()):
                values[found[1]] = found[2].strip()
            elif len(rules) < _TARGETS and (found := _RULE.match(line)):
                last = _MakeRule(found[2], [])
                for each in _expanded(found[1], values).split()[:_USES]:
                    rules.setdefault(each, []).append(last)
        asked = [each for each in words if not each.startswith("-") and "=" not in each]
        yield from _in_order(asked or [each for each in rules if each[0] != "."][:1], rules, values)


def _commands(line: str) -> list[list[str]]:
    """Return the simple commands of a line; of one that is not understood as a whole, those of its parts that are."""
    whole = commands_of_line(line, LEADS, ASIDES) if len(line) <= _PLAIN else []
    parts = (commands_of_line(each, LEADS, ASIDES) or () for each in _PARTS.split(line) if whole is None)
    return [*(whole or ()), *(words for part in parts for words in part)]


def _expanded(text: str, values: Mapping[str, str]) -> str:
    for _ in range(_DEEPEST):
        text = _USE.sub(lambda use: values.get(use[1] or use[2], use[0]), text[:_LONGEST], count=_USES)
    return text[:_LONGEST]


def _in_order(
    targets: Sequence[str], rules: Mapping[str, Sequence[_MakeRule]], values: Mapping[str, str]
) -> Iterator[str]:
    waiting, done = [(each, False) for each in reversed(targets)], set[str]()
    while waiting and len(done) < _LINES:
        target, ready = waiting.pop()
        if ready:
            yield from (_expanded(line, values) for rule in rules.get(target, ()) for line in rule.recipe)
        elif target not in done:
            done.add(target)
            waiting.append((target, True))
            needs = _expanded(" ".join(rule.needs for rule in rules.get(target, ())[:_LINES]), values)
            waiting += [(each, False) for each in reversed(needs.replace("|", " ").split()[:_LINES])]
