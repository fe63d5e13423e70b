"""Surveys of the programs that a person has: in threads, bounded, and shared by sessions that open together.

Rule: the event loop never waits for a directory of a PATH. One that does not answer costs itself and what follows it.
"""

import logging
from functools import partial
from typing import Final

import trio

from supervisor.categories.row import Surroundings
from supervisor.categories.shell import survey_programs
from supervisor.categories.toolchains import Toolchains
from supervisor.config.settings import Settings

_log: Final = logging.getLogger("strongroom.daemon")

_AT_ONCE: Final = 4
"""One that is given up goes on in its thread, and others need threads, too."""
_TIMEOUT_S: Final = 5.0
"""One of the directories may be that of another machine."""
_HOLDS_S: Final = 1.0
"""Seconds for which what was found counts for other sessions of the same person in the same root."""


class Surveys:
    """Those of one process."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_AT_ONCE)
        self._found: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, Surroundings]] = {}

    def forget(self) -> None:
        """Look anew from here on: the settings are others."""
        self._found.clear()

    async def look(self, settings: Settings, root: str, person: dict[str, str]) -> Surroundings:
        """Return what commands in a root have of a person.

        Raises:
            ConfigError: a variable of `[shell]` may not be given in this root.
        """
        now, key = trio.current_time(), (root, tuple(sorted(person.items())))
        self._found = {each: row for each, row in self._found.items() if row[0] + _HOLDS_S > now}
        if key in self._found:
            return self._found[key][1]
        seen = [("PATH", Toolchains((), ()))]
        look = partial(survey_programs, settings.config, settings.locations, root, person, partial(_note, seen))
        with trio.move_on_after(_TIMEOUT_S):
            survey = await trio.to_thread.run_sync(look, abandon_on_cancel=True, limiter=self._limiter)
            self._found[key] = now, survey.surroundings
            return survey.surroundings
        place, found = seen[-1]
        _log.warning("%s did not answer within %g s: commands lack its programs and those behind it", place, _TIMEOUT_S)
        return Surroundings(found.shown, found.path, found.own, silent=place)


def _note(seen: list[tuple[str, Toolchains]], place: str, found: Toolchains) -> None:
    seen[:] = [(place, found)]
