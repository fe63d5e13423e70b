"""How a console was asked for."""

from dataclasses import dataclass

from supervisor.config.repositories import NO_NAMES, Names


@dataclass(frozen=True)
class ConsoleOptions:
    """What `strongroom console` was told. None leaves it to the configuration."""

    profile: str | None = None
    root: str | None = None
    """Absolute."""
    names: Names = NO_NAMES
    """Of a repository, for the profile `librarian`."""
    model: str | None = None
    session: str | None = None
    """The id of a session to go on with, or the end of it."""
    continue_: bool = False
    """Go on with the newest session of this directory."""
    plain: bool = False
    """Lines in, lines out, also on a terminal."""
    colour: bool = True
    """False with NO_COLOR."""
