"""Fault plans, which say which fault happens to which call, or to which start of a worker.

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
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from supervisor.config.config_errors import cut, one_of, problem_in, unknown, unreadable
from supervisor.display.escape import name
from supervisor.display.unique_names import unique_names
from supervisor.errors import ConfigError
from supervisor.system import safe_files
from workers.catalog import CATEGORIES
from workers.faults.kinds import FAULTS, moments
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

    category: Annotated[str, one_of(CATEGORIES)]
    fault: Annotated[str, one_of(FAULTS)]
    tool: str = ""
    at: messages.Moment | None = None
    call: _Number | None = None
    every: _Number | None = None
    chance: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    times: _Number | None = None

    @property
    def moment(self) -> messages.Moment:
        return self.at or FAULTS[self.fault].moments[0]

    def applies_to(self, category: str, tool: str, *, start: bool) -> bool:
        """Say whether it is about such a call, or about a start."""
        return self.category == category and self.tool in ("", tool) and (self.moment == "start") == start


class _PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seed: _Seed = 0
    faults: tuple[FaultEntry, ...] = ()


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
        ConfigError: it is no plain file, it cannot be read, or something in it is unknown, wrong, or can never happen;
            the text names the file, the entry's number, the key, what was given, and what it must be.
    """
    path = cut(str(file), _PATH)
    try:
        data = safe_files.read_bytes(file, _LIMIT)
    except OSError as error:
        raise ConfigError(f"The fault plan {path} cannot be read: {error.strerror}.") from error
    table = _table(data, path, is_json=file.suffix.lower() == ".json")
    if problem := problem_in(table, _PlanFile).text:
        raise ConfigError(f"{path}: {problem}")
    plan = msgspec.convert(table, _PlanFile)
    if not plan.faults:
        raise ConfigError(f"{path}: it lists no faults. Begin each with a line [[faults]].")
    for number, entry in enumerate(plan.faults, 1):
        if problem := _unknown_tool(entry) or _contradiction(entry) or _impossible(entry):
            raise ConfigError(f"{path}: number {number} of `faults`: {problem}")
    return FaultPlan(file, hashlib.sha256(data).hexdigest(), plan.seed, plan.faults)


def _table(data: bytes, path: str, *, is_json: bool) -> Any:
    text = ""
    try:
        text = data.decode("utf-8")
        if not text.strip():
            return {}
        if not is_json:
            import tomllib

            return tomllib.loads(text)
        return json.loads(text, object_pairs_hook=unique_names)
    except (ValueError, RecursionError) as error:  # of tomllib, json and the codec
        raise ConfigError(f"The fault plan {path} cannot be read: {unreadable(error, text)}.") from error


def _unknown_tool(entry: FaultEntry) -> str:
    """Say that its category has no such tool."""
    tools = [tool.name for tool in CATEGORIES[entry.category].tools]
    return unknown(f"tool of {entry.category}", entry.tool, tools) if entry.tool not in ("", *tools) else ""


def _contradiction(entry: FaultEntry) -> str:
    """Say which keys of an entry exclude each other."""
    if entry.tool and entry.moment == "start":
        return f"a worker starts for all its tools, not for {entry.tool} alone; leave out `tool`, or `at`."
    given = {key: getattr(entry, key) for key in ("call", "every", "chance")}
    counts = [f"{key} = {value}" for key, value in given.items() if value is not None]
    return f"use one of `call`, `every` and `chance`, not {', '.join(counts)}." if len(counts) > 1 else ""


def _impossible(entry: FaultEntry) -> str:
    """Say why a fault can never happen at its moment; "" where it can."""
    effect = any(tool.effect for tool in CATEGORIES[entry.category].tools if entry.tool in ("", tool.name))
    possible = [each for each in moments(entry.fault, effect=effect) if not (entry.tool and each == "start")]
    if entry.moment in possible:
        return ""
    if entry.moment not in FAULTS[entry.fault].moments:
        return f"{entry.fault} cannot happen at '{entry.moment}'; it can at: {', '.join(possible)}."
    harmless = f"{entry.tool} changes nothing" if entry.tool else f"no tool of {entry.category} changes anything"
    return f"{harmless}, so no call comes to '{entry.moment}'; {entry.fault} can happen at: {', '.join(possible)}."


class RunningFaultPlan:
    """A plan while it is carried out.

    Args:
        plan: what to do.
    """

    def __init__(self, plan: FaultPlan) -> None:
        self.plan = plan
        self.happened: Counter[str] = Counter()
        """How often each fault was sent to a worker, by name."""
        self._seen: Counter[int] = Counter()
        self._chosen: Counter[int] = Counter()

    def fault_of_start(self, category: str) -> messages.Fault | None:
        """Return what happens to a worker that is being started."""
        return self._next_fault(category, "", start=True)

    def fault_of_call(self, category: str, tool: str) -> messages.Fault | None:
        """Return what happens to a call that is about to be sent; one that is sent again counts again."""
        return self._next_fault(category, tool, start=False)

    def _next_fault(self, category: str, tool: str, *, start: bool) -> messages.Fault | None:
        fitting = [at for at, entry in enumerate(self.plan.entries) if entry.applies_to(category, tool, start=start)]
        self._seen.update(fitting)
        chosen = next(filter(self._is_due, fitting), None)
        if chosen is None:
            return None
        self._chosen[chosen] += 1
        entry = self.plan.entries[chosen]
        self.happened[entry.fault] += 1
        what = f"{category} worker that starts" if start else f"{tool} of a {category} worker"
        _log.warning("fault injected: %s at %s, %s", entry.fault, entry.moment, what)
        return messages.Fault(entry.fault, entry.moment)

    def _is_due(self, at: int) -> bool:
        entry, number = self.plan.entries[at], self._seen[at]
        if entry.times is not None and self._chosen[at] >= entry.times:
            return False
        if entry.call is not None:
            return number == entry.call
        if entry.every is not None:
            return number % entry.every == 0
        if entry.chance is not None:
            drawn = random.Random(f"{self.plan.seed}/{at}/{number}").random()  # noqa: S311 - repeatable, not secret
            return drawn < entry.chance
        return True
