"""Files of the root that a person names: found while they type a path, and read for the prompt that names them.

Rule: workers look and read, as for a model that has the tools; what the profile has no tool for is not done. Nothing is
recorded: no effect is had, and no model is told anything before the prompt that holds it is a fact.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from supervisor.config.profiles import Profile
from supervisor.errors import ConfigError, WorkerError
from supervisor.pool.pools import Pools
from supervisor.tools.catalog import offers, unoffered
from workers.wire import messages
from workers.wire.frames import FrameTooLarge
from workers.wire.media_types import NAMES

TEXT_LIMIT: Final = 2**18
"""Bytes of one file that goes along with a prompt as text."""
TOGETHER: Final = 2**20
"""Bytes of all that go along with one: a line of the protocol holds them, whatever JSON makes of them."""
TOO_MUCH: Final = f"with the others it is more than {TOGETHER:,} bytes"
_RANK: Final = "rank_files"
READ: Final = "read_file"
_NO_FILE: Final = ("not_found", "not_a_file", "not_a_directory", "path_escape", "invalid_arguments")
_WHY: Final[Mapping[str, str]] = {
    "not_text": "it is not text",
    "too_large": "it is larger than can be looked at",
    "permission_denied": "the system denies access",
}


class NamedFile(NamedTuple):
    """A file that is there: its text, or its type where it is an image or a document, or why it cannot go along."""

    path: str
    size: int = 0
    """Bytes; 0 where they were not read."""
    text: str = ""
    media_type: str = ""
    problem: str = ""
    """A clause."""


async def rank(profile: Profile, pools: Pools, typed: str, most: int) -> tuple[list[str], str]:
    """Return the files that fit some letters best, and a remark, such as that not all files were looked at.

    Raises:
        ConfigError: the profile cannot search.
        WorkerError: no worker has answered.
    """
    offer = unoffered(_RANK)
    if not any(each.category == offer.category for each in offers(profile.tools).values()):
        raise ConfigError(f"The profile {profile.name} searches no files.")
    arguments = msgspec.json.encode({"typed": typed, "most": most})
    answer = await pools.pool(offer.category).call(_RANK, arguments, effect=False)
    if isinstance(answer, messages.Failed):
        raise WorkerError(answer.message)
    return msgspec.json.decode(answer.content, type=list[str]), answer.note


async def read(profile: Profile, pools: Pools, path: str) -> NamedFile | None:
    """Return a file by its path, relative to the root; None where there is none, or the profile reads no files."""
    if READ not in profile.tools:
        return None
    try:
        answer = await answer_of(pools, path)
    except (WorkerError, FrameTooLarge) as error:
        return NamedFile(path, problem=f"it cannot be read now: {error}")
    if isinstance(answer, messages.Failed):
        problem = _WHY.get(answer.kind, answer.message)
        return None if answer.kind in _NO_FILE else NamedFile(path, problem=problem)
    if answer.data:
        return NamedFile(path, len(answer.data), media_type=answer.content if answer.content in NAMES else "")
    size = len(answer.content.encode())
    if size > TEXT_LIMIT:
        return NamedFile(path, size, problem=f"it has {size:,} bytes; at most {TEXT_LIMIT:,} go along")
    return NamedFile(path, size, answer.content)


async def answer_of(pools: Pools, path: str, **lines: int) -> messages.Done | messages.Failed:
    """Let a worker read a file, or some lines of it, as the tool's arguments say.

    Raises:
        WorkerError: none has.
        FrameTooLarge: the path is too long.
    """
    arguments = msgspec.json.encode({"path": path, **lines})
    return await pools.pool(offers((READ,))[READ].category).call(READ, arguments, effect=False)
