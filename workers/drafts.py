"""The names of writes in progress.

Rule: no other file has such a name: whoever lists or searches leaves it out, and no tool writes it.
"""

import re
from typing import Final

_DRAFT: Final = re.compile(r"\.strongroom-[0-9a-f]{16}\.tmp")


def is_draft(name: str) -> bool:
    """Say whether a name is that of a write in progress; listings leave it out."""
    return _DRAFT.fullmatch(name) is not None


def draft_name(token: str) -> str:
    """Return the name of a write in progress. `token` is 16 hexadecimal digits that no other write has."""
    return f".strongroom-{token}.tmp"
