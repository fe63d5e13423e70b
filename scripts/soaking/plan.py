"""The fault plan of a soak, from its seed.

Rule: pure. Every fault at every moment at which it can happen has an entry, in each category but the control one, which
stays healthy. Most calls survive: a class of faults has one budget, which its entries share.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from scripts.soaking.chance import chance_of
from workers.catalog import CATEGORIES
from workers.faults.kinds import FAULTS, moments
from workers.wire.messages import Moment

CONTROLS: Final = ("search", "web")
"""Categories that may stay healthy; the others are needed for effects."""

_Class = Literal["start", "harmless", "deadly", "slow", "stuck"]
_BUDGETS: Final[Mapping[_Class, float]] = MappingProxyType(
    {"start": 0.03, "harmless": 0.04, "deadly": 0.02, "slow": 0.004, "stuck": 0.0006}
)
"""The share of calls (or of starts) that have a fault of the class, in each category."""

_HARMLESS: Final = frozenset(
    {"error_10mb", "fill_disk", "flood_stderr", "one_byte_at_a_time", "open_files", "print_stdout"}
)
_SLOW: Final = frozenset({"fork_bomb", "hang", "ignore_sigterm", "sigstop", "spin"})
"""They end when the call's time is up."""
_COMMITTING: Final[frozenset[Moment]] = frozenset({"keep", "decided", "committed"})
"""Moments at which a worker is given minutes."""


class Entry(NamedTuple):
    """One `[[faults]]` of the plan."""

    category: str
    fault: str
    at: Moment
    chance: float


def control(seed: int) -> str:
    """Return the category that has no faults."""
    return chance_of(seed, "control").choice(CONTROLS)


def entries(seed: int) -> list[Entry]:
    """Return the whole plan, in the order in which it counts."""
    chance = chance_of(seed, "plan")
    found = []
    for category in CATEGORIES:
        possible = list(_possible(category)) if category != control(seed) else []
        many = {name: sum(each == name for _, _, each in possible) for name in _BUDGETS}
        for fault, moment, name in possible:
            share = _BUDGETS[name] / many[name]
            found.append(Entry(category, fault, moment, round(share * chance.uniform(0.3, 1.7), 8)))
    chance.shuffle(found)
    return found


def text(seed: int, life: int) -> str:
    """Return the plan as TOML for one life of the daemon: the same faults in each, at other calls."""
    tables = (
        f'[[faults]]\ncategory = "{each.category}"\nfault = "{each.fault}"\n'
        f'at = "{each.at}"\nchance = {each.chance:.8f}\n'
        for each in entries(seed)
    )
    return f"seed = {seed * 1000 + life}\n\n" + "\n".join(tables)


def _possible(category: str) -> Iterator[tuple[str, Moment, _Class]]:
    effects = any(tool.effect for tool in CATEGORIES[category].tools)
    for fault in FAULTS:
        for moment in moments(fault, effect=effects):
            yield fault, moment, _class(fault, moment)


def _class(fault: str, moment: Moment) -> _Class:
    if moment == "start":
        return "start"
    if fault in _HARMLESS:
        return "harmless"
    if fault in _SLOW:
        return "stuck" if moment in _COMMITTING else "slow"
    return "deadly"
