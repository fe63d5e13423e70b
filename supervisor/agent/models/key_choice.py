"""The key that counts for each provider, of those that are known.

Rule: first what the environment of the person who asks holds, with the server that it names; then what `strongroom
login` keeps, for the server that it was kept for; then the environment of this process. So no key goes to a server that
somebody else has named. Keys are in memory alone: nothing here is recorded, and a text of it has none.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Literal

from supervisor.agent.models.provider import Provider
from supervisor.agent.models.providers import known_providers, rows
from supervisor.agent.models.server import server_at
from supervisor.config.key_store import KeptKey, KeyStore
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

NOTHING_TOLD: Final[Mapping[str, str]] = MappingProxyType({})

_LONGEST: Final = 4096
"""Characters of a key, or of an address."""
KeyChoice = tuple[str, ...]
"""The keys that count, and the servers that the environment names; to be compared and not to be shown."""
KeySource = Literal["environment", "kept", "none"]
SOURCES: Final[Mapping[KeySource, str]] = MappingProxyType(
    {
        "environment": "with the key of this environment",
        "kept": "with the key that `strongroom login` keeps",
        "none": "without a key",
    }
)
"""Each in words."""


def choice_of(settings: Settings) -> KeyChoice:
    """Return what tells settings with keys from others of the same process."""
    keys = (row.key_in(settings) for row in known_providers(settings))
    return *keys, *(settings.variable(row.server) for row in rows() if row.server)


def variable_names(settings: Settings) -> list[str]:
    """Return the variables that hold keys, and the addresses of servers that they go to."""
    return [name for row in known_providers(settings) for name in (row.key, row.other_key, row.server) if name]


def told_keys(settings: Settings, told: Mapping[str, str]) -> dict[str, str]:
    """Return what a client told, or what an environment holds, of `variable_names`; no value longer than a key."""
    return {name: value for name in variable_names(settings) if 0 < len(value := told.get(name, "")) <= _LONGEST}


def with_keys(settings: Settings, told: Mapping[str, str] = NOTHING_TOLD) -> Settings:
    """Return settings in which each provider has the key, and the server, that count.

    Args:
        settings: of this process, with its environment.
        told: of `variable_names`, what the environment of the person who asks holds.

    Raises:
        ConfigError: the file of the kept keys cannot be used.
    """
    rows, kept = [row for row in known_providers(settings) if row.key], KeyStore(settings.keys_file).kept()
    for row in rows:
        if row.server and any(told.get(name) for name in (row.key, row.other_key, row.server)):
            environment = {**settings.environment, row.server: told.get(row.server, "")}
            settings = replace(settings, environment=environment)
    return replace(settings, keys=dict(_keys(settings, rows, told, kept)))


def _keys(
    settings: Settings, rows: Iterable[Provider], told: Mapping[str, str], kept: Mapping[str, KeptKey]
) -> Iterator[tuple[tuple[str, str], str]]:
    for row in rows:
        if own := told.get(row.key) or told.get(row.other_key):
            yield row.identity, own
        elif found := kept_for(row, settings, kept):
            yield row.identity, found
        elif told.get(row.server):  # the key of this process is for the server that this process names
            yield row.identity, ""


def kept_for(row: Provider, settings: Settings, kept: Mapping[str, KeptKey]) -> str:
    """Return the kept key of a provider, if it is for the server that the settings name; else ""."""
    found = kept.get(row.label)
    return found.key if found is not None and found.server == server_of(row, settings) else ""


def server_of(row: Provider, settings: Settings) -> str:
    """Return the server that a provider's key goes to: scheme, host and port; "" where its address is none."""
    with suppress(ConfigError):
        return server_at(row.address(settings)).shown
    return ""


def source_of(row: Provider, settings: Settings) -> KeySource:
    """Return where the key of a provider comes from, for settings with keys that count for this very process."""
    if not row.key_in(settings):
        return "none"
    held = settings.variable(row.key) or settings.variable(row.other_key)
    return "environment" if held else "kept"
