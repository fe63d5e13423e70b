"""`strongroom prune`: sessions that nobody has used for long are deleted, by the daemon.

Rule: how old is said by whoever asks, never by a default, as undo data and contents cannot be had back.
"""

import time
from typing import Any, Final

from supervisor.acp import extensions
from supervisor.clients.connection.link import every_field
from supervisor.clients.connection.link_events import decline
from supervisor.clients.connection.start import connect_or_private
from supervisor.config.settings import Settings
from supervisor.display.escape import visible
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


def prune(settings: Settings, age: int, *, dry_run: bool) -> list[extensions.OldSession]:
    """Have the daemon that runs, or one of its own, delete what nobody has used for `age` seconds.

    Raises:
        StrongroomError: it was not done, or not all of it.
    """
    if not settings.journal.exists():
        return []
    with connect_or_private(settings, decline, "prune") as connected:
        connected.warn()
        params = extensions.PruneParams(time.time() - age, dry_run)
        return connected.link.request(extensions.PRUNE_METHOD, params, extensions.PruneResult).sessions


def document(found: list[extensions.OldSession]) -> list[dict[str, Any]]:
    """Return what was deleted and what stays as scripts read it: every field, also those that say nothing."""
    return [every_field(each) for each in found]


def told(found: list[extensions.OldSession], *, dry_run: bool) -> str:
    """Return what was deleted and what stays, for a person to read."""
    deleted = "would be deleted" if dry_run else "deleted"
    lines = [
        f"{each.session_id}  {utc(each.updated_at)}  {f'stays: {each.stays}' if each.stays else deleted}"
        + (f"  {visible(each.title)}" if each.title else "")
        for each in found
    ]
    gone = sum(not each.stays for each in found)
    return "\n".join([*lines, f"{gone} {deleted}, {len(found) - gone} stay"])
