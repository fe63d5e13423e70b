"""The names of writes in progress.

Rule: no other file has such a name: whoever lists or searches leaves it out, and no tool writes it.
"""

import os
import re
from contextlib import suppress
from typing import Final

_DRAFT: Final = re.compile(r"\.strongroom-[0-9a-f]{16}\.tmp")


def is_draft(name: str) -> bool:
    """Say whether a name is that of a write in progress; listings leave it out."""
    return _DRAFT.fullmatch(name) is not None


def drafts_in(directory: str) -> list[str]:
    """Return the names of directories that are made ready there, or were when their process was killed."""
    found: list[str] = []
    with suppress(OSError), os.scandir(directory) as entries:
        found += [each.name for each in entries if is_draft(each.name) and each.is_dir(follow_symlinks=False)]
    return found


def draft_name(token: str) -> str:
    """Return the name of a write in progress. `token` is 16 hexadecimal digits that no other write has."""
    return f".strongroom-{token}.tmp"
