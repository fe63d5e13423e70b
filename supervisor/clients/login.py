"""`strongroom login`, `logout`: keys of model providers, kept on this machine.

Rule: a key is shown to its provider's server and to nobody else, and none is printed. One that the server refuses is
not kept; where it cannot be asked, or does not say, that is told.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from supervisor.agent.models.key_choice import server_of
from supervisor.agent.models.provider import Provider
from supervisor.agent.models.providers import known_providers, provider_of
from supervisor.agent.models.server import server_at
from supervisor.agent.models.server_check import checked
from supervisor.config.config_errors import unknown
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.key_store import KeptKey, KeyStore, key_problem
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, StrongroomError
from supervisor.system.safe_files import secure_home


class ProviderKey(NamedTuple):
    """A provider, and what there is of its key."""

    provider: str
    variable: str
    """That can hold it, too."""
    is_set: bool
    """The variable is, here, and goes before what is kept."""
    kept_for: str
    """The server that a kept key is for; empty where none is kept."""
    server: str
    """The server that is asked, as it is set here."""


def key_takers(settings: Settings) -> list[Provider]:
    """Return the providers that take a key."""
    return [row for row in known_providers(settings) if row.key]


def taker(settings: Settings, label: str) -> Provider:
    """Return the provider of that name.

    Raises:
        ConfigError: there is none that takes a key.
    """
    known = {row.label: row for row in reversed(key_takers(settings))}
    if label in known:
        return known[label]
    if any(row.label == label for row in known_providers(settings)):
        own = (
            f" Name a variable for it: `key_env` in [providers.{label}]." if label in settings.config.providers else ""
        )
        raise ConfigError(f"The provider {label!r} takes no key.{own}")
    why = unknown("provider", label, known)
    raise ConfigError(f"{why[:1].upper()}{why[1:]} `strongroom login --list` shows all of them.")


def usual_taker(settings: Settings) -> str:
    """Return the provider of the configured model, if it takes a key; else of the default of all."""
    names = (settings.config.model, DEFAULT_MODEL)
    rows = (provider_of(name, settings) for name in names if name)
    return next(row.label for row in rows if row is not None and row.key)


def keep(settings: Settings, row: Provider, key: str) -> list[str]:
    """Keep a key for the provider's server, having asked that; return what to tell of it.

    Raises:
        ConfigError: it can be no key, the server's address is none, or it cannot be kept.
        StrongroomError: the server refuses it.
    """
    if problem := key_problem(key):
        raise ConfigError(f"This is no key: {problem}. Nothing was kept.")
    server = server_at(row.address(settings)).shown
    answer = checked(row, replace(settings, keys={**settings.keys, row.identity: key}))
    if answer.key == "refused":
        raise StrongroomError(f"{answer.detail[:1].upper()}{answer.detail[1:]}. Nothing was kept.")
    secure_home(settings.home)
    KeyStore(settings.keys_file).keep(row.label, KeptKey(key, server))
    told = [f"The key of {row.label} is kept in {settings.keys_file}, for {server} alone."]
    asked = "" if answer.key == "taken" else "It was not checked: "
    told.append(f"{asked}{answer.detail}.")
    told.append("Sessions that are opened from now on use it.")
    held = [name for name in (row.key, row.other_key) if settings.variable(name)]
    return [*told, *(f"{name} is set here, and goes before it." for name in held)]


def forget(settings: Settings, label: str) -> bool:
    """Forget the kept key of a provider, also of one that is configured no more; say whether there was one.

    Raises:
        ConfigError: the file of the keys cannot be used, or there is no such provider.
    """
    if KeyStore(settings.keys_file).forget(label):
        return True
    taker(settings, label)
    return False


def kept_labels(settings: Settings) -> list[str]:
    """Return the providers of which a key is kept.

    Raises:
        ConfigError: the file of the keys cannot be used.
    """
    return list(KeyStore(settings.keys_file).kept())


def keys_of(settings: Settings) -> list[ProviderKey]:
    """Return all providers that take a key, and those of which one is kept although they are configured no more.

    Raises:
        ConfigError: the file of the keys cannot be used.
    """
    kept = KeyStore(settings.keys_file).kept()
    found = [
        ProviderKey(
            row.label,
            row.key,
            bool(settings.variable(row.key) or settings.variable(row.other_key)),
            kept[row.label].server if row.label in kept else "",
            server_of(row, settings),
        )
        for row in key_takers(settings)
    ]
    gone = kept.keys() - {each.provider for each in found}
    return [*found, *(ProviderKey(label, "", False, kept[label].server, "") for label in sorted(gone))]


def as_json(keys: Sequence[ProviderKey]) -> dict[str, Any]:
    """Return what scripts read."""
    return {"providers": [each._asdict() for each in keys]}


def key_lines(keys: Sequence[ProviderKey]) -> list[tuple[str, str]]:
    """Return for each provider its name and what to say of it."""
    return [(each.provider, _told(each)) for each in keys]


def _told(key: ProviderKey) -> str:
    held = f"{key.variable} is set here" if key.is_set else ""
    if not key.kept_for:
        return held or f"no key; {key.variable} can hold one, too"
    kept = f"a key is kept for {key.kept_for}"
    if not key.variable:
        return f"{kept}; no such provider is configured any more"
    if held:
        return f"{held}, and goes before the key that is kept for {key.kept_for}"
    return kept if key.kept_for == key.server else f"{kept}, and does not count: {key.server} is asked here"
