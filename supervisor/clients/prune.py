"""`strongroom prune`: sessions that nobody has used for long are deleted, by the daemon.

Rule: looking first. How old is said by whoever asks, never by a default, and what goes is named to the daemon session
by session, as undo data and images cannot be had back.
"""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from supervisor.acp import extensions
from supervisor.clients.connection.link import every_field
from supervisor.clients.connection.link_events import decline
from supervisor.clients.connection.start import connect_or_private
from supervisor.config.settings import Settings
from supervisor.display.escape import visible
from supervisor.display.proposed_effects import size
from supervisor.errors import ConfigError
from supervisor.journal.index import utc

_SECONDS: Final = {"h": 3_600, "d": 86_400, "w": 604_800}


def seconds_of(age: str) -> int:
    """Return the seconds of an age such as 30d.

    Raises:
        ConfigError: it is none.
    """
    number, unit = age[:-1], age[-1:]
    if unit not in _SECONDS or not (number.isascii() and number.isdecimal()) or len(number) > len(str(_SECONDS["w"])):
        raise ConfigError(f"{age[:80]!r} is no age. Write a number of hours, days or weeks: 12h, 30d, 8w.")
    return int(number) * _SECONDS[unit]


class Pruned(NamedTuple):
    """The sessions that nobody has used for so long, oldest first, and whether those that do not stay are deleted."""

    sessions: list[extensions.OldSession]
    deleted: bool

    @property
    def going(self) -> list[extensions.OldSession]:
        """Those that do not stay."""
        return [each for each in self.sessions if not each.stays]


def prune(settings: Settings, age: int, agrees: Callable[[Pruned], bool]) -> Pruned:
    """Have the daemon that runs, or one of its own, delete what nobody has used for `age` seconds.

    Args:
        settings: of the home.
        age: in seconds.
        agrees: is shown what would be deleted, if anything, and says whether it is: exactly that, and no more.

    Returns:
        What it was shown, where it does not agree; else what became of each.

    Raises:
        StrongroomError: it was not done, or not all of it.
    """
    if not settings.journal.exists():
        return Pruned([], deleted=False)
    with connect_or_private(settings, decline, "prune") as connected:
        connected.warn()
        before = time.time() - age

        def request(delete: tuple[str, ...] | None) -> list[extensions.OldSession]:
            params = extensions.PruneParams(before, delete)
            return connected.link.request(extensions.PRUNE_METHOD, params, extensions.PruneResult).sessions

        found = Pruned(request(None), deleted=False)
        if not (found.going and agrees(found)):
            return found
        staying = [each for each in found.sessions if each.stays]
        done = [*staying, *request(tuple(each.session_id for each in found.going))]
        return Pruned(sorted(done, key=lambda each: each.updated_at), deleted=True)


def document(found: Pruned) -> list[dict[str, Any]]:
    """Return what was deleted and what stays as scripts read it: every field, also those that say nothing."""
    return [every_field(each) for each in found.sessions]


def listing(found: Pruned, most: int | None = None) -> str:
    """Return a line for each, for a person to read, and the sum; of more than `most` the oldest and the newest."""
    lines = [_line(each) for each in found.sessions]
    if most is not None and len(lines) > most:
        half = most // 2
        lines[half : len(lines) - half] = [f"... {len(lines) - 2 * half} more; --dry-run lists all"]
    return "\n".join([*lines, summary(found)])


def summary(found: Pruned) -> str:
    """Return how many are deleted, or would be, how old they are, how much goes with them, and how many stay."""
    going, staying = found.going, len(found.sessions) - len(found.going)
    said = f"{len(going)} {'session' if len(going) == 1 else 'sessions'} {'' if found.deleted else 'would be '}deleted"
    if going:
        said += f", last used between {utc(going[0].updated_at)} and {utc(going[-1].updated_at)}"
        kept = sum(each.kept for each in going)
        said += f", with {size(kept)} of images, documents and undo data" if kept else ""
    return said + (f"; {staying} {'stays' if staying == 1 else 'stay'}" if staying else "")


def _line(old: extensions.OldSession) -> str:
    fate = f"stays: {old.stays}" if old.stays else size(old.kept) if old.kept else ""
    return f"{old.session_id}  {utc(old.updated_at)}  {fate:>8}" + (f"  {visible(old.title)}" if old.title else "")
