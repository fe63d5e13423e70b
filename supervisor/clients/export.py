"""`strongroom export`, and `/export` of the console: a session in a new file of its own.

Rule: a file that is there already stays as it is, and only its owner may read a new one.
"""

import os
from pathlib import Path

from supervisor.config.settings import Settings
from supervisor.display.escape import name
from supervisor.errors import StrongroomError
from supervisor.reports.session_formats import FORMATS


def export(settings: Settings, session: str, form: str, output: str | None = None) -> str:
    """Write a session to a new file; return its name, safe to show.

    Args:
        settings: say where the journal is.
        session: an id, or the end of one where that is unique.
        form: one of `FORMATS`.
        output: its name; by default one with the session's, in this directory.

    Raises:
        ConfigError: no such session, or several.
        StrongroomError: it cannot be written.
    """
    from supervisor.reports.history import history

    text = history(settings, session, form)
    path = Path(output or f"strongroom-{session}.{FORMATS[form].ending}")
    shown = name(str(path))
    try:
        with open(path.expanduser(), "x", encoding="utf-8", errors="backslashreplace", opener=_for_its_owner) as file:
            file.write(text)
    except FileExistsError as error:
        raise StrongroomError(f"{shown} exists already, and stays as it is. Name another file.") from error
    except (OSError, RuntimeError, ValueError) as error:  # the home of nobody; a NUL
        why = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        raise StrongroomError(f"{shown} cannot be written: {why}.") from error
    return shown


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
