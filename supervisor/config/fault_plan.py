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

import hashlib
import json
import logging
import random
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from supervisor.config.config_errors import AllowedTexts, complaint, cut, shown, unreadable
from supervisor.display.escape import name
from supervisor.errors import ConfigError
from supervisor.system import plain_file
from workers.catalog import CATEGORIES
from workers.faults.kinds import FAULTS, MOMENTS, moments
from workers.wire import messages

_LIMIT: Final = 2**20
"""Bytes of a plan."""
_PATH: Final = 300
"""Characters of a plan's path that an error repeats."""

_log: Final = logging.getLogger("strongroom.faults")

_Number = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
_Seed = Annotated[int, msgspec.Meta(ge=-(10**18), le=10**18)]


class FaultEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[faults]]`: one fault, and the calls that have it. For a start (`at = "start"`), starts count instead."""

    category: str
    fault: str
    tool: str = ""
    at: messages.Moment | None = None
    call: _Number | None = None
    every: _Number | None = None
    chance: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    times: _Number | None = None

    @property
    def moment(self) -> messages.Moment:
        """When it happens."""
        return self.at or FAULTS[self.fault].moments[0]

    def concerns(self, category: str, tool: str, *, start: bool) -> bool:
        """Say whether it is about such a call, or about a start."""
        return self.category == category and self.tool in ("", tool) and (self.moment == "start") == start


class _PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seed: _Seed = 0
    faults: tuple[Any, ...] = ()


class _UniqueKeys(dict[str, Any]):
    """A JSON object that knows which name stood in it twice, since the last one alone is kept."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        many = Counter(key for key, _ in pairs)
        self.twice = next((key for key, times in many.items() if times > 1), None)


@dataclass(frozen=True)
class FaultPlan:
    """A plan that has been checked."""

    file: Path
    digest: str
    """SHA-256 of the file."""
    seed: int
    entries: tuple[FaultEntry, ...]

    def __str__(self) -> str:
        faults = "1 fault" if len(self.entries) == 1 else f"{len(self.entries)} faults"
        return f"{name(str(self.file))} ({faults}, seed {self.seed})"


def read_plan(file: Path) -> FaultPlan:
    """Read a plan: JSON where its name ends so, else TOML.

    Raises:
        ConfigError: it is no regular file, it cannot be read, or something in it is unknown, wrong, or can never
            happen; the text names the file, the entry's number, the key, what was given, and what it must be.
    """
    path = cut(str(file), _PATH)
    try:
        data = plain_file.read_bytes(file, _LIMIT)
    except OSError as error:
        raise ConfigError(f"The fault plan {path} cannot be read: {error.strerror}.") from error
    table = _table(data, path, is_json=file.suffix.lower() == ".json")
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: a fault plan is an object with `seed` and `faults`, not {shown(table)}.")
    _once(path, table)
    if not isinstance(faults := table.get("faults", []), list):
        hint = "In TOML, begin each fault with a line [[faults]], not [faults]."
        raise ConfigError(f"{path}: `faults` is {shown(faults)}; it must be a list. {hint}")
    if problem := complaint(table, _PlanFile):
        raise ConfigError(f"{path}: {_ended(problem)}")
    plan = msgspec.convert(table, _PlanFile)
    if not plan.faults:
        raise ConfigError(f"{path}: there is no fault in it. Begin each with a line [[faults]].")
    entries = [_entry(f"{path}: number {number} of [[faults]]", given) for number, given in enumerate(plan.faults, 1)]
    return FaultPlan(file, hashlib.sha256(data).hexdigest(), plan.seed, tuple(entries))


def _table(data: bytes, path: str, *, is_json: bool) -> Any:
    text = ""
    try:
        text = data.decode("utf-8")
        if not text.strip():
            return {}
        return json.loads(text, object_pairs_hook=_UniqueKeys) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of tomllib, json and the codec
        raise ConfigError(f"The fault plan {path} cannot be read: {unreadable(error, text)}.") from error


def _once(where: str, given: Any) -> None:
    """Refuse an object in which a name stands twice."""
    if isinstance(given, _UniqueKeys) and given.twice is not None:
        raise ConfigError(f"{where}: `{cut(given.twice)}` stands there twice; leave one of them out.")


def _entry(where: str, given: Any) -> FaultEntry:
    _once(where, given)
    if problem := complaint(given, FaultEntry, _choices(given)):
        raise ConfigError(f"{where}: {_ended(problem)}")
    entry = msgspec.convert(given, FaultEntry)
    if entry.tool and entry.moment == "start":
        whole = f"a worker starts for all its tools, not for {entry.tool} alone"
        raise ConfigError(f"{where}: {whole}; leave out `tool`, or `at`.")
    if problem := _never(entry):
        raise ConfigError(f"{where}: {problem}.")
    counts = {key: getattr(entry, key) for key in ("call", "every", "chance") if getattr(entry, key) is not None}
    if len(counts) > 1:
        both = ", ".join(f"{key} = {value}" for key, value in counts.items())
        raise ConfigError(f"{where}: use one of `call`, `every` and `chance`, not {both}.")
    return entry


def _ended(problem: str) -> str:
    return problem if problem.endswith("?") else f"{problem}."


def _choices(given: Any) -> dict[str, AllowedTexts]:
    """Return which texts an entry may have; which tools, depends on its category."""
    found = {
        "category": AllowedTexts("category", list(CATEGORIES)),
        "fault": AllowedTexts("fault", list(FAULTS)),
        "at": AllowedTexts("moment", list(MOMENTS)),
    }
    category = given.get("category") if isinstance(given, dict) else None
    if isinstance(category, str) and category in CATEGORIES and given.get("tool") != "":
        found["tool"] = AllowedTexts(f"tool of {category}", [tool.name for tool in CATEGORIES[category].tools])
    return found


def _never(entry: FaultEntry) -> str:
    """Say why a fault can never happen at its moment; "" where it can."""
    effect = any(tool.effect for tool in CATEGORIES[entry.category].tools if entry.tool in ("", tool.name))
    possible = [each for each in moments(entry.fault, effect=effect) if not (entry.tool and each == "start")]
    if entry.moment in possible:
        return ""
    if entry.moment not in FAULTS[entry.fault].moments:
        return f"{entry.fault} cannot happen at '{entry.moment}'; it can at: {', '.join(possible)}"
    harmless = f"{entry.tool} changes nothing" if entry.tool else f"no tool of {entry.category} changes anything"
    return f"{harmless}, so no call comes to '{entry.moment}'; {entry.fault} can happen at: {', '.join(possible)}"


class RunningFaultPlan:
    """A plan while it is carried out.

    Args:
        plan: what to do.
    """

    def __init__(self, plan: FaultPlan) -> None:
        self.plan = plan
        self.happened: Counter[str] = Counter()
        """How often each fault was sent to a worker, by name."""
        self._seen = [0] * len(plan.entries)
        self._left = [entry.times for entry in plan.entries]

    def of_start(self, category: str) -> messages.Fault | None:
        """Return what happens to a worker that is being started."""
        return self._next(category, "", start=True)

    def of_call(self, category: str, tool: str) -> messages.Fault | None:
        """Return what happens to a call that is about to be sent; one that is sent again counts again."""
        return self._next(category, tool, start=False)

    def _next(self, category: str, tool: str, *, start: bool) -> messages.Fault | None:
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
        return messages.Fault(entry.fault, entry.moment)

    def _falls(self, at: int, entry: FaultEntry, number: int) -> bool:
        if entry.call is not None:
            return number == entry.call
        if entry.every is not None:
            return number % entry.every == 0
        if entry.chance is not None:
            drawn = random.Random(f"{self.plan.seed}/{at}/{number}").random()  # noqa: S311 - repeatable, not secret
            return drawn < entry.chance
        return True
