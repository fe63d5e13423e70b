"""The configuration of a running daemon: read again when its file has changed, or when it is told to.

Rule: what is read counts from the next opened session on, and whoever opens that is told. A file with a mistake changes
nothing: what was read before stays in force, and the mistake is told until it is mended.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from supervisor.agent.models.providers import secrets
from supervisor.config.profiles import check_profiles
from supervisor.config.settings import Settings, load, stamp_of
from supervisor.daemon.process.logs import keep_out
from supervisor.daemon.status import About
from supervisor.errors import ConfigError

_log: Final = logging.getLogger("strongroom.daemon")

_CHANGED: Final = (
    "THE CONFIGURATION HAS CHANGED: {file} was read again. It counts for this session and later ones; those that are "
    "open keep what they were opened with."
)
_REFUSED: Final = (
    "THE CONFIGURATION HAS A MISTAKE, and what was read before stays in force: {problem} `strongroom daemon --reload` "
    "reads it again."
)


class RunningConfiguration:
    """What the daemon reads again.

    Args:
        settings: as they were read when it began.
        about: is told of a mistake.
        use: takes new settings into use.
    """

    def __init__(self, settings: Settings, about: About, use: Callable[[Settings], None]) -> None:
        self._began = settings
        self._about = about
        self._use = use
        self._stamp = settings.config_stamp

    def look(self) -> list[str]:
        """Read the file again if it has changed since it was read last; return what to tell who opens a session."""
        notices = []
        if stamp_of(self._began.config_file) != self._stamp and not self.reload():
            notices.append(_CHANGED.format(file=self._began.config_file))
        if problem := self._about.config_problem:
            notices.append(_REFUSED.format(problem=problem))
        return notices

    def reload(self) -> str:
        """Read the file again; return why that does not count, "" where it does."""
        self._stamp = stamp_of(self._began.config_file)
        try:
            settings = load()
            check_profiles(settings)
        except (ConfigError, ValueError, RecursionError) as error:  # whatever a file can do to its reader
            self._about.config_problem = str(error)
            _log.error("the configuration was not reloaded, the previous one stays in force: %s", error)
        else:
            self._about.config_problem = ""
            self._stamp = settings.config_stamp
            keep_out(secrets(settings))
            self._use(replace(settings, socket=self._began.socket))
            _log.info("read %s again; it counts for what is opened from now on", settings.config_file)
        return self._about.config_problem
