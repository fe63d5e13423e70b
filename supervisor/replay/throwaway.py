"""A directory for one replay, which goes with it: also after the process was killed, by the next replay.

Rule: it is a draft, locked for as long as its process lives, in a directory for such alone, that is this user's.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from supervisor.errors import ConfigError, reason
from supervisor.system.safe_files import own_directory
from workers.tree.drafts import create_draft, remove_directory, sweep_directory

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def throwaway_directory() -> Iterator[Path]:
    """Give a directory that is removed at the end.

    Raises:
        ConfigError: none can be made.
    """
    place = Path(tempfile.gettempdir(), f"strongroom-replays-{os.geteuid()}")
    own_directory(place, "Set TMPDIR to a directory of your own.")
    try:
        parent = os.open(place, _DIRECTORY)
    except OSError as error:
        raise ConfigError(f"The directory {place} cannot be used: {reason(error)}.") from error

    def create(name: str) -> int:
        os.mkdir(name, 0o700, dir_fd=parent)
        return os.open(name, _DIRECTORY, dir_fd=parent)

    def remove(name: str) -> None:
        with suppress(FileNotFoundError):
            remove_directory(parent, name)

    try:
        sweep_directory(parent)
        name, draft = create_draft(create, remove)
    except OSError as error:
        os.close(parent)
        raise ConfigError(f"Nothing can be made in {place}: {reason(error)}.") from error
    try:
        yield place / name
    finally:
        remove(name)
        os.close(draft)
        os.close(parent)
