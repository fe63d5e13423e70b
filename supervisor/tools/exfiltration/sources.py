"""Sources of what a call has shown: who wrote it, under which name, and its digest. Pure.

Rule: a file counts as an agent's where one wrote it or a part of it, in any session, by its path or by its digest; as a
stranger's where it lies among dependencies, or in a root of others; else as the person's.
A command may print anything: its output is nobody's, and a stranger's where it or its output names a file that is
foreign, where it prints a line that stems from foreign text, or where it had a network, as `CallDecided` says, but for
the own words of package managers. A program of an environment may be named by its path as by its name.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from supervisor.acp.prompt_parts import PromptPart
from supervisor.journal.facts import Author, CallDecided, CallEnded, Source
from supervisor.rules.modes import PLANNED
from workers.catalog import find_tool, supervised_tools

WrittenBy = Callable[[str, bytes, str], Author]
"""Says who wrote a file, by its path in the root, the digest of its content where that is known, and lines of it."""

WITH_RESULTS: Final = frozenset({"timeout", "resource_limit"})
"""Errors that come with what was found, or printed, until then."""

_ANSWERED: Final = frozenset({"fetch_failed", "domain_not_allowed", "not_text"})
"""Errors in which a site may have its say: of a status, of where it redirects, of its type."""
_FOREIGN_NAMES: Final = (
    "node_modules bower_components jspm_packages .venv venv virtualenv site-packages dist-packages vendor third_party "
    "third-party deps .cargo .rustup .gem .bundle .m2 .gradle .tox .nox .yarn .pnpm-store .hex .mix .opam .stack "
    "pods carthage elm-stuff"
)
_FOREIGN: Final = frozenset(_FOREIGN_NAMES.split())
"""Casefolded names of directories into which package managers and people put what others wrote."""
_NAME: Final = 1000
"""Characters of a name that are kept."""
FRAME_BEGINS: Final = "<resource uri="
"""Before a file that an editor sent along."""
_PATHS: Final = 1000
"""Names in a command and its output that are looked up."""
_BEFORE_A_COLON: Final = re.compile(r"(?:^|\\n|[\n\"])([^\s:\"\\]{1,1000}):")
"""Where programs name the file of a line that they print; in JSON, where lines end so."""
_WORDS: Final = re.compile(r"[^\s'\"=:,;|&<>()\\]+")
_PROGRAMS: Final = re.compile(
    r'(?:"command":\s*"|&&|[;|])\s*((?:\./)?(?:\.?venv/bin|node_modules/\.bin)/[A-Za-z0-9._-]+)(?=[\s"])'
)
"""What a command starts by its path, as it would by its name."""


def is_foreign_path(path: str) -> bool:
    """Say whether a path leads through a directory of dependencies."""
    return not _FOREIGN.isdisjoint(path.casefold().split("/"))


def no_author(_path: str, _digest: bytes, _text: str) -> Author:
    """Know of no file that an agent wrote."""
    return ""


def shows_files(tool: str) -> bool:
    """Say whether what a tool returns may stand in files."""
    row = find_tool(tool)
    return row is not None and row.private and (bool(row.runs) or not row.effect)


def sources_of(
    arguments: str,
    ended: CallEnded,
    written_by: WrittenBy = no_author,
    *,
    foreign_root: bool = False,
    content: str | bytes = "",
) -> tuple[Source, ...]:
    """Return the sources of what a call has shown; none where that is our own words.

    Args:
        arguments: as they ran, raw JSON.
        ended: its end.
        written_by: the files that agents wrote.
        foreign_root: whether the whole root is a stranger's.
        content: what a file holds, before anything in it was written out; where it is not what was shown.
    """
    row, text = find_tool(ended.tool), shown_by(ended)
    given, name = as_object(arguments), subject_of(ended.tool, arguments)

    def source(kind: Any, foreign: bool = False) -> Source:
        return Source(kind, (name or ended.tool)[:_NAME], _digest(text), len(text), foreign=foreign)

    if row is None or not text or ended.tool in supervised_tools():  # they name their own, else they show our words
        return (source("foreign_tool", foreign=True),) if text and row is None else ()
    if row.effect and not row.runs:
        strange = foreign_root or is_foreign_path(name) or written_by(name, b"", "") == "tainted"
        return (source("agent_file", strange),) if PLANNED in f"{ended.note}{text}" else ()
    if row.runs:
        foreign = foreign_root or _is_of_strangers(arguments, text, written_by)
        return (msgspec.structs.replace(source("output", foreign), name=_command(given)[:_NAME]),)
    if not row.private:
        return (source("page", foreign=True),)

    def of_file(path: str, lines: str, file: bytes = b"") -> Source:
        author = written_by(path, file, lines)
        kind: Any = "agent_file" if author else "foreign_file" if foreign_root or is_foreign_path(path) else "file"
        foreign = author == "tainted" or kind == "foreign_file"
        return Source(kind, path[:_NAME], _digest(lines), len(lines), file, foreign)

    if row.kind == "read" and row.subject == "path" and ended.form == "text" and ended.ok:
        whole = (content or ended.content) if given.get("offset") is None and given.get("limit") is None else ""
        return (of_file(name, text, _digest(whole) if whole else b""),)
    others = (of_file(path, lines) for path, lines in lines_by_path(ended).items())
    strange = foreign_root or is_foreign_path(name)
    name = f"{ended.tool} {name}"
    rest = source("foreign_file" if strange else "file", strange)
    return (rest, *(each for each in others if each.kind != "file"))


def recorded_sources(arguments: str, ended: CallEnded, networked: bool | None) -> tuple[Source, ...]:
    """Return the sources of what a recorded call has shown.

    Args:
        arguments: as they ran, raw JSON.
        ended: its end.
        networked: of a call that had a network, whether what it shows is foreign for that; None for all others.
    """
    known = ended.sources or sources_of(arguments, ended)
    if networked is None:
        return known
    return tuple(msgspec.structs.replace(each, foreign=networked or not ended.ok) for each in known)


def networked(decided: CallDecided) -> bool | None:
    """Return whether what a call shows is foreign, for it had a network; None where it had none."""
    return not decided.own_words if decided.network or decided.unconfined else None


def subject_of(tool: str, arguments: str) -> str:
    """Return what a call is about, by its arguments, raw JSON; "" where no argument says that."""
    row = find_tool(tool)
    return str(as_object(arguments).get(row.subject, "")) if row is not None and row.subject else ""


def _is_of_strangers(arguments: str, text: str, written_by: WrittenBy) -> bool:
    """Say whether a command, or what it printed, names or holds what strangers wrote."""
    paths = dict.fromkeys((*_WORDS.findall(arguments), *_BEFORE_A_COLON.findall(text)))
    printed = "\n".join(each for each in as_object(text).values() if isinstance(each, str)) or text
    texts = chain([("", printed)], ((path, "") for path in islice(paths, _PATHS)))
    tainted = any(written_by(path, b"", each) == "tainted" for path, each in texts)
    programs = set(_PROGRAMS.findall(arguments))
    return tainted or any(is_foreign_path(each) for each in paths if each not in programs)


def sources_of_parts(parts: Sequence[PromptPart]) -> tuple[Source, ...]:
    """Return the sources of a prompt's parts; none where all was typed."""
    if not any(part.uri or FRAME_BEGINS in part.text for part in parts):
        return ()
    return tuple(
        Source(
            "attachment" if part.uri else "person",
            part.uri[:_NAME],
            _digest(part.text),
            len(part.text),
            foreign=part.uri.casefold().startswith(("http:", "https:")) or is_foreign_path(part.uri),
        )
        for part in parts
    )


def sources_of_attachments(
    text: str, sources: Sequence[Source], written_by: WrittenBy, root: str, *, foreign_root: bool
) -> tuple[Source, ...]:
    """Return the sources of a prompt's parts, foreign where an attachment stems from foreign text.

    An image or a document has no text here, and counts by its name alone.

    Args:
        text: of the prompt, its parts one after the other.
        sources: of the parts.
        written_by: the files that agents wrote.
        root: where addresses of files in it begin.
        foreign_root: whether all of it is a stranger's.
    """
    ends = accumulate(each.size for each in sources)

    def strange(each: Source, end: int) -> bool:
        path = unquote(each.name)
        if foreign_root and path.startswith(root):
            return True
        return written_by(path.removeprefix(root), b"", text[end - each.size : end]) == "tainted"

    return tuple(
        msgspec.structs.replace(each, foreign=True) if each.kind == "attachment" and strange(each, end) else each
        for each, end in zip(sources, ends, strict=True)
    )


def shown_by(ended: CallEnded) -> str:
    """Return what a call has shown of the world; "" where it only says in our words what happened."""
    printed = "\n".join(str(value) for key, value in ended.details.items() if key in ("stdout", "stderr", "output"))
    if PLANNED in (ended.note if ended.ok else ended.content):  # with the lines of files that would change
        return f"{ended.content}\n{ended.note}"
    return ended.content if ended.ok else "\n".join(filter(None, [_found(ended), printed]))


def lines_by_path(ended: CallEnded) -> Mapping[str, str]:
    """Return the lines of each file that a search has found."""
    found: dict[str, list[str]] = {}
    for row in _rows(ended):
        match row:
            case {"path": str(path), "text": str(line)}:
                found.setdefault(path, []).append(line)
            case _:
                continue
    return {path: "\n".join(lines) for path, lines in found.items()}


def _rows(ended: CallEnded) -> Iterator[Any]:
    if ended.ok and ended.form == "json":
        try:
            rows = msgspec.json.decode(ended.content)
        except (msgspec.DecodeError, RecursionError):
            return
        yield from rows if isinstance(rows, list) else ()


def _found(ended: CallEnded) -> str:
    return ended.content if ended.kind in (WITH_RESULTS if _is_private(ended.tool) else _ANSWERED) else ""


def _is_private(tool: str) -> bool:
    row = find_tool(tool)
    return row is None or row.private


def _command(given: Mapping[str, Any]) -> str:
    rest = given.get("args")
    return " ".join(map(str, [given.get("command", ""), *(rest if isinstance(rest, list) else [])]))


def as_object(text: str) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        value = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _digest(text: str | bytes) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).digest()
