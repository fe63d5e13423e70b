"""A new file for what a person asked to have: an exported session, a proof.

Rule: a file that is there already stays as it is, only its owner may read a new one, and it is there once it is whole.
"""

from collections.abc import Iterable
from pathlib import Path

from supervisor.display.escape import name
from supervisor.errors import StrongroomError
from supervisor.system.safe_files import write_new


def write_new_file(path: str, parts: Iterable[bytes]) -> str:
    """Write a new file from parts, which may be made meanwhile; return its name, safe to show.

    Raises:
        StrongroomError: it cannot be written.
    """
    shown = name(path)
    try:
        write_new(Path(path).expanduser(), parts, 0o600)
    except FileExistsError as error:
        raise StrongroomError(f"{shown} exists already, and stays as it is. Name another file.") from error
    except (OSError, RuntimeError, ValueError) as error:  # the home of nobody; a NUL
        why = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        raise StrongroomError(f"{shown} cannot be written: {why}.") from error
    return shown
