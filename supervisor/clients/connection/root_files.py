"""Files of a session's root that a line names as `@PATH`: read by the daemon, and sent along with the line. Pure.

Rule: where no file is, the word is only a word. What is there and cannot go along is told of, and named all the same.
"""

import os
from collections.abc import Container, Sequence
from typing import Any, Final

from supervisor.acp.extensions import AttachedFile
from supervisor.clients.connection.attachments import words_in
from supervisor.display.columns import cut
from supervisor.display.proposed_effects import size

_WORDS: Final = 20
"""Words of a line that are looked at."""
_NAME: Final = 60


def paths_in(text: str, root: str, others: Container[str]) -> list[tuple[str, ...]]:
    """Return the paths, relative to the root, that each word of a line may mean; `others` are known already."""
    words = [word for word in words_in(text) if not any(os.path.expanduser(each) in others for each in word)]
    return [tuple(path for each in word if (path := _within(root, each))) for word in words[:_WORDS]]


def _within(root: str, path: str) -> str:
    return path if not path.startswith("/") else path.removeprefix(f"{root.rstrip('/')}/").lstrip("/")


def meant(paths: Sequence[tuple[str, ...]], files: Sequence[AttachedFile]) -> list[AttachedFile]:
    """Return the files that are meant, each once: of each word the first at which one is."""
    there = {file.path: file for file in files}
    found = (next((path for path in word if path in there), None) for word in paths)
    return [there[path] for path in dict.fromkeys(found) if path is not None]


def block_of(file: AttachedFile) -> dict[str, Any]:
    """Return a file as a block of a prompt."""
    if file.media_type:
        return {"type": "resource_link", "uri": file.uri, "name": file.path}
    return {"type": "resource", "resource": {"uri": file.uri, "mimeType": "text/plain", "text": file.text}}


def told(files: Sequence[AttachedFile]) -> list[str]:
    """Return what a person is told before the line is sent: what goes along, and what does not."""
    along = [f"{cut(file.path, _NAME)} ({size(file.size)})" for file in files if not file.problem]
    lines = [f"{cut(file.path, _NAME)} does not go along: {file.problem}." for file in files if file.problem]
    return [*lines, *([f"With it goes {', '.join(along)}."] if along else [])]
