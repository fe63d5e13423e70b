"""How a console was asked for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConsoleOptions:
    """What `strongroom console` was told. None leaves it to the configuration."""

    profile: str | None = None
    root: str | None = None
    """Absolute."""
    model: str | None = None
    session: str | None = None
    """The id of a session to go on with, or the end of it."""
    continue_: bool = False
    """Go on with the newest session of this directory."""
    plain: bool = False
    """Lines in, lines out, also on a terminal."""
    colour: bool = True
    """False with NO_COLOR."""
