"""Options of `strongroom console`."""

from typing import Literal

import msgspec

from supervisor.config.repositories import NO_NAMES, Names


class ConsoleOptions(msgspec.Struct, frozen=True):
    """Options of the command line; None leaves a value to the configuration."""

    profile: str | None = None
    root: str | None = None
    """Absolute."""
    names: Names = NO_NAMES
    """Of a repository, for the profile `librarian`."""
    model: str | None = None
    mode: Literal["ask", "edits", "plan"] | None = None
    session: str | None = None
    """The id of a session to resume, or the end of it."""
    continue_: bool = False
    """Resume the newest session of this directory."""
    plain: bool = False
    """Lines in, lines out, also on a terminal."""
    colour: bool = True
    """False with NO_COLOR."""

    def of_session(self, session: str) -> "ConsoleOptions":
        """Return the options for another session: the one of that id, or with "" a new one like the first."""
        options = msgspec.structs.replace(self, session=session or None, continue_=False)
        return msgspec.structs.replace(options, mode=None) if session else options
