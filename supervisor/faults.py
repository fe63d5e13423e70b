"""Fault plans: which fault happens to which call, or to which start of a worker.

Rule: a plan is checked as a whole before anything starts, and then only counts. What happens depends on nothing but
the plan, its seed and how many calls there have been: the same calls have the same faults. Nothing but the command
line can name a plan.

    seed = 7                        # of every `chance`; 0 by default

    [[faults]]                      # the first one that fits a call is the one that happens
    category = "files"
    tool = "read_file"              # every tool of the category where none is named
    fault = "exit"
    at = "call"                     # the moment; each fault has a usual one
    call = 3                        # the third such call; or `every = 5`, or `chance = 0.1`; else each of them
    times = 1                       # and then no more
"""

import difflib
import hashlib
import json
import logging
import random
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from supervisor.errors import ConfigError
from workers import wire
from workers.catalog import CATEGORIES
from workers.faults.kinds import FAULTS, MOMENTS

_LIMIT: Final = 2**20
"""Bytes of a plan."""

_log: Final = logging.getLogger("strongroom.faults")

_T = TypeVar("_T")
_Number = Annotated[int, msgspec.Meta(ge=1)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[faults]]`: one fault, and the calls that have it. For a start (`at = "start"`), starts count instead."""

    category: str
    fault: str
    tool: str = ""
    at: wire.Moment | None = None
    call: _Number | None = None
    every: _Number | None = None
    chance: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    times: _Number | None = None

    @property
    def moment(self) -> wire.Moment:
        """When it happens."""
        return self.at or FAULTS[self.fault].moments[0]

    def concerns(self, category: str, tool: str, *, start: bool) -> bool:
        """Say whether it is about such a call, or about a start."""
        return self.category == category and self.tool in ("", tool) and (self.moment == "start") == start


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seed: int = 0
    faults: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Plan:
    """A plan that has been checked."""

    file: Path
    digest: str
    """SHA-256 of the file."""
    seed: int
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        faults = "1 fault" if len(self.entries) == 1 else f"{len(self.entries)} faults"
        return f"{self.file} ({faults}, seed {self.seed})"


def read_plan(file: Path) -> Plan:
    """Read a plan: JSON where its name ends so, else TOML.

    Raises:
        ConfigError: it cannot be read, or something in it is unknown or wrong; the text names the file and the entry.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(_LIMIT + 1)
        if len(data) > _LIMIT:
            raise ConfigError(f"{file} is larger than {_LIMIT} bytes: that is no fault plan.")
        table = (json.loads if file.suffix == ".json" else tomllib.loads)(data.decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"The fault plan {file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # of tomllib, json and the codec
        raise ConfigError(f"The fault plan {file} cannot be read: {error}.") from error
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: a fault plan is an object with `seed` and `faults`, not {type(table).__name__}.")
    for key in table:
        _known(str(file), "name", key, _Plan.__struct_fields__)
    plan = _converted(str(file), table, _Plan)
    if not plan.faults:
        raise ConfigError(f"{file}: there is no fault in it. Begin each with a line [[faults]].")
    entries = [_entry(f"{file}: number {number} of [[faults]]", given) for number, given in enumerate(plan.faults, 1)]
    return Plan(file, hashlib.sha256(data).hexdigest(), plan.seed, tuple(entries))


def _entry(where: str, given: dict[str, Any]) -> Entry:
    for key in given:
        _known(where, "name", key, Entry.__struct_fields__)
    for name, known in (("category", CATEGORIES), ("fault", FAULTS), ("at", MOMENTS)):
        if isinstance(value := given.get(name), str):
            _known(where, name, value, known)
    entry = _converted(where, given, Entry)
    if entry.tool:
        _known(where, f"tool of {entry.category}", entry.tool, [each.name for each in CATEGORIES[entry.category].tools])
    if entry.moment not in FAULTS[entry.fault].moments:
        possible = ", ".join(FAULTS[entry.fault].moments)
        raise ConfigError(f"{where}: {entry.fault} cannot happen at {entry.at!r}; it can at: {possible}.")
    if entry.tool and entry.moment == "start":
        raise ConfigError(f"{where}: a worker starts for all its tools; leave out `tool`, or `at`.")
    if sum(each is not None for each in (entry.call, entry.every, entry.chance)) > 1:
        raise ConfigError(f"{where}: use one of `call`, `every` and `chance`.")
    return entry


def _converted(where: str, given: Any, wanted: type[_T]) -> _T:
    try:
        return msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}.") from error


def _known(where: str, what: str, given: str, known: Iterable[str]) -> None:
    names = list(known)
    if given in names:
        return
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    raise ConfigError(f"{where}: unknown {what} {given!r}; {hint}")


class Faults:
    """A plan while it is carried out.

    Args:
        plan: what to do.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.happened: Counter[str] = Counter()
        """How often each fault was sent to a worker, by name."""
        self._seen = [0] * len(plan.entries)
        self._left = [entry.times for entry in plan.entries]

    def of_start(self, category: str) -> wire.Fault | None:
        """Return what happens to a worker that is being started."""
        return self._next(category, "", start=True)

    def of_call(self, category: str, tool: str) -> wire.Fault | None:
        """Return what happens to a call that is about to be sent; one that is sent again counts again."""
        return self._next(category, tool, start=False)

    def _next(self, category: str, tool: str, *, start: bool) -> wire.Fault | None:
        chosen = -1
        for at, entry in enumerate(self.plan.entries):
            if entry.concerns(category, tool, start=start):
                self._seen[at] += 1
                if chosen < 0 and self._left[at] != 0 and self._falls(at, entry, self._seen[at]):
                    chosen = at
        if chosen < 0:
            return None
        left = self._left[chosen]
        self._left[chosen] = None if left is None else left - 1
        entry = self.plan.entries[chosen]
        self.happened[entry.fault] += 1
        what = f"{category} worker that starts" if start else f"{tool} of a {category} worker"
        _log.warning("fault injected: %s at %s, %s", entry.fault, entry.moment, what)
        return wire.Fault(entry.fault, entry.moment)

    def _falls(self, at: int, entry: Entry, number: int) -> bool:
        if entry.call is not None:
            return number == entry.call
        if entry.every is not None:
            return number % entry.every == 0
        if entry.chance is not None:
            drawn = random.Random(f"{self.plan.seed}/{at}/{number}").random()  # noqa: S311 - repeatable, not secret
            return drawn < entry.chance
        return True
