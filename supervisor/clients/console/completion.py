"""Completions for the Tab key: commands and their arguments, tool names, and paths beneath the session's root.

Rule: pure but for the listing of one directory. Looking never follows a link and never leaves the root, and reads at
most a bounded part of one directory. A name that holds something invisible is not offered.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from supervisor.display.escape import visible

_SCANNED: Final = 5000
"""Entries of a directory that are looked at."""
_OFFERED: Final = 200
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class CompletionItem:
    """One completion: `text` replaces the last `replaces` characters before the cursor."""

    text: str
    replaces: int
    shown: str = ""
    about: str = ""


def offers(
    before: str, *, root: str, tools: Sequence[str], commands: Mapping[str, str], choices: Mapping[str, Sequence[str]]
) -> Iterator[CompletionItem]:
    """Yield what may follow `before`, the text up to the cursor.

    Args:
        before: in which the last word is completed.
        root: the directory that paths are relative to; "" for none.
        tools: their names.
        commands: what each slash command does, by name without the slash.
        choices: what a command's argument may be.
    """
    if before.startswith("/") and "\n" not in before:
        name, space, argument = before[1:].partition(" ")
        if not space:
            for each, about in commands.items():
                if each.startswith(name):
                    yield CompletionItem(f"/{each}", len(before), f"/{each}", about)
            return
        if name in choices:
            yield from (CompletionItem(each, len(argument)) for each in choices[name] if each.startswith(argument))
            return
    word = before.replace("\n", " ").rpartition(" ")[2]
    if word:
        yield from (CompletionItem(tool, len(word), about="tool") for tool in tools if tool.startswith(word))
    if root:
        yield from (CompletionItem(path, len(word), name) for path, name in paths(root, word))


def paths(root: str, word: str) -> Iterable[tuple[str, str]]:
    """Return the paths beneath `root` that begin with `word`, each with its last name; directories end in "/"."""
    folder, slash, begin = word.rpartition("/")
    parts = folder.split("/") if folder else []
    if word.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return []
    found: list[tuple[str, str]] = []
    try:
        descriptor = _opened(root, parts)
    except (OSError, ValueError):
        return []
    try:
        with os.scandir(descriptor) as entries:
            for entry, _ in zip(entries, range(_SCANNED), strict=False):
                if not entry.name.startswith(begin) or (entry.name.startswith(".") and not begin.startswith(".")):
                    continue
                if visible(entry.name) != entry.name or not _completable(entry):
                    continue
                name = f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                found.append((f"{folder}{slash}{name}", name))
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return sorted(found)[:_OFFERED]


def _completable(entry: "os.DirEntry[str]") -> bool:
    return not entry.is_symlink() and (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False))


def _opened(root: str, parts: Sequence[str]) -> int:
    """Return a descriptor of a directory beneath `root`, reached without a link.

    Raises:
        OSError: there is none.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            deeper = os.open(part, _DIRECTORY, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = deeper
    return descriptor
