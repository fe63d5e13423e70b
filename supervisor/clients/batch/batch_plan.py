"""A batch's plan: profile, root, model and mode of each item, all of them found before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from supervisor.acp import extensions
from supervisor.clients.batch.items import Item
from supervisor.clients.connection import requests
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.own_places import holds
from supervisor.config.profiles import Profile, profiles, resolve
from supervisor.config.repositories import NO_NAMES, Names
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError


@dataclass(frozen=True)
class Use:
    """Profile, model and mode of an item."""

    profile: Profile
    model: str
    mode: extensions.ModeName = "edits"


Plan = Mapping[str, Use]
"""Those of each item, by its id."""


def plan(
    settings: Settings,
    items: Sequence[Item],
    output: Path | None,
    profile: str | None,
    root: str | None,
    model: str | None,
    names: Names = NO_NAMES,
    mode: extensions.ModeName | None = None,
) -> Plan:
    """Resolve every item's profile, root and model before anything runs.

    Raises:
        ConfigError: one of them cannot be used, or an agent could write the output.
    """
    check_schemas(items)
    found: dict[str, Use] = {}
    alike: dict[Item, Use] = {}
    for item in items:
        wanted = msgspec.structs.replace(item, id=0, prompt=None, prompts=None, schema=None, check=None)
        if wanted not in alike:
            using = _resolved_for(settings, item, profile, root, names)
            if using.writable and output is not None and holds(using.root, output):
                raise ConfigError(
                    f"The output {str(output)!r} lies in the root {using.root!r}, where the agent writes."
                )
            name = _model(item.model or model or settings.config.model or DEFAULT_MODEL)
            alike[wanted] = Use(using, name, mode or "edits")
        found[str(item.id)] = alike[wanted]
    return found


def _resolved_for(settings: Settings, item: Item, profile: str | None, root: str | None, names: Names) -> Profile:
    try:
        return _resolved(settings, item, profile, root, names)
    except ConfigError as error:
        if (item.profile, item.root, item.group, item.technology, item.environment) == (None,) * 5:
            raise  # the options are wrong
        raise ConfigError(f"Item {item.id!r}: {error}") from error


def _resolved(settings: Settings, item: Item, profile: str | None, root: str | None, names: Names) -> Profile:
    """Return what an item works with: what is said for all counts where it does not say, and fits what it says."""
    own = Names(item.group, item.technology, item.environment)
    chosen = profiles(settings).get(item.profile or "")
    if own.given or (chosen is not None and chosen.by_name):
        root = None
    if item.root or (chosen is not None and not chosen.by_name):
        names = NO_NAMES
    names = Names(*(for_all if mine is None else mine for mine, for_all in zip(own, names, strict=True)))
    return resolve(settings, item.profile or profile, item.root or root, None, names)


def _model(name: str) -> str:
    """Return a model's name as the daemon understands it."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"No model {name!r}. Its name must be UTF-8.") from error
    if "\0" in name:
        raise ConfigError(f"No model {name!r}. A name holds no zero byte.")
    return requests.absolute_model(name)


def check_schemas(items: Sequence[Item]) -> None:
    """Make sure that answers can be held against the schemas; most items have the same.

    Raises:
        ConfigError: one cannot be used.
    """
    asked = {msgspec.json.encode(item.schema): item for item in reversed(items) if item.schema is not None}
    if not asked:
        return
    from supervisor.agent.answer_schema import problem_in_schema

    for item in reversed(asked.values()):
        if why := problem_in_schema(item.schema):
            raise ConfigError(f"The schema of item {item.id!r} cannot be used: {why}.")
