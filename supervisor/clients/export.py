"""`strongroom export`, and `/export` of the console: a session in a new file of its own."""

from supervisor.clients.new_file import write_new_file
from supervisor.config.settings import Settings
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
    path = output or f"strongroom-{session}.{FORMATS[form].ending}"
    return write_new_file(path, [text.encode("utf-8", "backslashreplace")])
