"""From a name on the command line to a model.

Rule: one row a kind of name, each opened lazily: nobody pays for the libraries of a model that is not used.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from supervisor.agent.models.model import Model
from supervisor.config.settings import DEFAULT_MODEL, Settings
from supervisor.errors import ConfigError


def _offline(_name: str, _settings: Settings) -> Model:
    from supervisor.agent.models.offline import OfflineModel

    return OfflineModel()


def _scripted(name: str, _settings: Settings) -> Model:
    from supervisor.agent.models.scripted import ScriptedModel

    return ScriptedModel(Path(name.removeprefix("scripted:")))


def _messages_api(name: str, settings: Settings) -> Model:
    if settings.api_key is None and settings.base_url is None:
        raise ConfigError(
            f"The model {name!r} needs a key: set ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL for a server of your own), "
            "or use --model offline, which needs neither."
        )
    from supervisor.agent.models.messages_api import AnthropicModel

    return AnthropicModel(name, settings.api_key or "no-key-given", settings.base_url)


_KINDS: Final[tuple[tuple[str, Callable[[str, Settings], Model]], ...]] = (
    (r"offline", _offline),
    (r"scripted:.+", _scripted),
    (r"(?s:.+)", _messages_api),
)
"""The first row whose pattern is the whole name opens the model."""


def open_model(name: str | None, settings: Settings) -> Model:
    """Return the model called `name`; by default the configured one, else the default of all.

    Raises:
        ConfigError: it cannot be used: no key, no such file, or a name that this version does not know.
    """
    name = name or settings.config.model or DEFAULT_MODEL
    if settings.base_url is None and not re.fullmatch(r"offline|scripted:.+|claude-.+", name):
        raise ConfigError(
            f"No model {name!r}. Use offline, scripted:FILE or claude-...; any other name needs ANTHROPIC_BASE_URL, "
            "a server that speaks the Messages API."
        )
    return next(make for pattern, make in _KINDS if re.fullmatch(pattern, name))(name, settings)
