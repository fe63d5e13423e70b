"""The detour of a turn whose model gives no reply: it waits, or another model is asked."""

from dataclasses import dataclass


@dataclass
class Detour:
    """That of one session."""

    since: float = 0.0
    """When the first wait for the next reply began, in seconds since the epoch; 0: none did."""
    model: str = ""
    """The model that the turn asks in place of the session's own, until it ends or is suspended."""
    allowed: bool | None = None
    """What the person said of asking others; None where they were not asked."""
