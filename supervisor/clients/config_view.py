"""`strongroom config`: what holds, and where each of it comes from.

Rule: only looking. Passwords in addresses, and what headers hold, are not shown.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from supervisor.agent.models.key_choice import SOURCES, source_of, with_keys
from supervisor.agent.models.providers import known_providers
from supervisor.config.config_editor import key_path
from supervisor.config.config_errors import nearest, shown
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.config_reader import ConfigValue, config_values
from supervisor.config.reference import toml_value
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import running
from supervisor.errors import ConfigError

_CREDENTIALS: Final = re.compile(r"(?<=//)[^\s/@]*(?=@)")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_REMOVED: Final = "[removed]"


class Held(NamedTuple):
    """One thing that holds."""

    key: str
    value: Any
    source: str
    """"default", "FILE:LINE", the name of a variable of the environment, or of an option."""


def held_values(settings: Settings) -> list[Held]:
    """Return each key of the configuration.

    Raises:
        ConfigError: the configuration has a mistake.
    """
    return [_held(each, settings) for each in config_values(settings.locations)]


def held_at(settings: Settings, key: str) -> list[Held]:
    """Return a key, or the keys of a table.

    Raises:
        ConfigError: there is none of that name, or the configuration has a mistake.
    """
    found, path = config_values(settings.locations), key_path(key)
    within = [each for each in found if each.path[: len(path)] == path]
    if not within:
        hint = nearest(key, [dotted(each.path) for each in found]) or "`strongroom config` shows all of them."
        raise ConfigError(f"Unknown key {shown(key)}; {hint}")
    return [_held(each, settings) for each in within]


def surroundings(settings: Settings) -> Iterator[Held]:
    """Yield where things are kept, and where keys come from: what the environment and options say."""
    variables = ", ".join(name for name, _ in settings.home_variables) or "default"
    yield Held("configuration", str(settings.config_file), variables)
    yield Held("home", str(settings.home), variables)
    yield Held("logs", str(settings.logs), variables)
    daemon = running(settings)
    told = "" if daemon is None else daemon.socket
    if told in ("", str(settings.socket)):
        yield Held("socket", str(settings.socket), variables if settings.home_variables else "default")
    else:
        yield Held("socket", told, "option --socket of the daemon that runs")
    with_own = with_keys(settings, settings.environment)
    for row in known_providers(with_own):
        if row.key:
            source = source_of(row, with_own)
            name = row.key if settings.variable(row.key) or not row.other_key else row.other_key
            yield Held(f"key of {row.label}", "", name if source == "environment" else SOURCES[source])


def as_json(held: Sequence[Held]) -> list[dict[str, Any]]:
    """Return what scripts read."""
    return [each._asdict() for each in held]


def held_lines(held: Sequence[Held]) -> list[str]:
    """Return keys as lines of TOML, each with its source in a comment; one without a value is a comment."""
    texts = [f"{each.key} = {toml_value(each.value)}" if each.value is not None else f"#{each.key}" for each in held]
    width = min(max((len(text) for text in texts), default=0), 60)
    return [f"{text:{width}}  # {each.source}" for text, each in zip(texts, held, strict=True)]


def dotted(path: Sequence[str]) -> str:
    """Return a path as one writes it in TOML."""
    return ".".join(name if _BARE.fullmatch(name) else toml_value(name) for name in path)


def _held(value: ConfigValue, settings: Settings) -> Held:
    source = f"{settings.config_file}:{value.line}" if value.line else "default"
    held = value.value or DEFAULT_MODEL if value.path == ("model",) else value.value
    return Held(dotted(value.path), _shown(held, value.path), source)


def _shown(value: Any, path: Sequence[str]) -> Any:
    if "headers" in path and value:
        return _REMOVED
    return _CREDENTIALS.sub(_REMOVED, value) if isinstance(value, str) else value
