"""The models of one process, shared by the sessions that have the same keys.

Rule: one for each name and choice of keys, opened when it is first wanted. Keys that a client told are gone with the
last session that has them, and the turn of the sweep after it. What holds of a model is known without a key.
"""

import logging
import os
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from supervisor.agent.fallbacks import Fallbacks
from supervisor.agent.models.key_choice import NOTHING_TOLD, KeyChoice, choice_of, with_keys
from supervisor.agent.models.model import Model
from supervisor.agent.models.model_facts import ModelFacts, model_facts
from supervisor.agent.models.model_opening import learn_limits, opened_model
from supervisor.agent.models.providers import provider_of
from supervisor.agent.models.request_window import RequestWindow
from supervisor.agent.models.server_limits import NOTHING_LEARNED, LearningModel, ServerLimits
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, ModelError

_log: Final = logging.getLogger("strongroom.daemon")

_PATIENCE_S: Final = 5.0
"""Seconds that a server may ask for a wait which needs no fact."""
_CLOSE_TIMEOUT: Final = 1.0
"""Seconds that the models' connections have to close."""

_Opened = tuple[str, int, KeyChoice]
"""A name, the moment at which its file was last changed, and the keys."""


class SharedModels:
    """The models that are open.

    Args:
        settings: as they were read; `use_settings` brings others.
        nursery: warms them up; its owner calls `close` before it ends.
    """

    def __init__(self, settings: Settings, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._models: dict[_Opened, Model] = {}
        self._opened_last: dict[str, Model] = {}
        """By the name that people have for it: whose server has said most lately what it holds."""
        self._windows: dict[tuple[str, str], RequestWindow] = {}
        """By the server's address, and the key."""
        self._unused: list[_Opened] = []
        """What clients' keys have opened, and nobody used when it was last looked."""
        self._adopted: list[Model] = []
        self._facts: dict[tuple[str, ServerLimits], ModelFacts] = {}
        self._fallbacks = Fallbacks()
        self.use_settings(settings)

    def use_settings(self, settings: Settings) -> None:
        """Use other settings for what is opened from here on."""
        self._settings = settings
        others = settings.config.fallbacks
        self._fallbacks.config = settings.config.waiting
        self._fallbacks.names = (settings.config.model or DEFAULT_MODEL, *others) if others else ()
        self._models.clear()
        self._opened_last.clear()
        self._facts.clear()

    def open(self, name: str | None, told: Mapping[str, str] = NOTHING_TOLD) -> Model:
        """Return the model called `name` (default: the configured one), warmed up in the background.

        The same for every session with the same keys; a script that has changed since is read again.

        Args:
            name: as people have it.
            told: what the environment of the client holds of keys (`key_choice.variable_names`).

        Raises:
            ConfigError: it cannot be used, or the file of the kept keys cannot.
        """
        settings = with_keys(self._settings, told)
        key = (name or "", _changed_at(name or ""), choice_of(settings))
        if key not in self._models:
            model = self._models[key] = opened_model(name, settings)
            self._share_window(model)
            self._adopted.append(model)
            self._nursery.start_soon(_warm, model, settings)
        self._opened_last[name or ""] = self._models[key]
        return self._models[key]

    def open_or_offline(self, name: str, told: Mapping[str, str], *, must: bool) -> tuple[Model, str]:
        """Return a model; where it need not be that one and cannot be opened, the offline one, and why."""
        try:
            return self.open(name, told), ""
        except ConfigError as error:
            if must:
                raise
            return self.open("offline"), str(error)

    def same_keys(self, told: Mapping[str, str], other: Mapping[str, str]) -> bool:
        """Say whether the same keys count for two clients; so does one who cannot know."""
        try:
            return choice_of(with_keys(self._settings, told)) == choice_of(with_keys(self._settings, other))
        except ConfigError:
            return True

    def fallbacks(self, told: Mapping[str, str] = NOTHING_TOLD) -> Fallbacks:
        """Return the models that a session asks where its own gives no reply, with the keys that its client told."""
        return replace(self._fallbacks, open=partial(self.open, told=told))

    def facts(self, name: str) -> ModelFacts:
        """Return what holds of a model, with what its server has said of it so far. Safe in any thread."""
        model = self._opened_last.get(name)
        learned = model.learned if isinstance(model, LearningModel) else NOTHING_LEARNED
        key = name, learned
        if key not in self._facts:
            self._facts[key] = model_facts(name, self._settings, learned)
        return self._facts[key]

    def _share_window(self, model: Model) -> None:
        """Let all models of a server have the same window, and leave longer waits to the conversations."""
        from supervisor.agent.models.remote_model import RemoteModel

        while (inner := getattr(model, "inner", None)) is not None:  # of one whose tools are text, or of Ollama's
            model = inner
        if isinstance(model, RemoteModel):
            model.window = self._windows.setdefault((model.base_url, model.api_key), RequestWindow())
            model.retries = replace(model.retries, patience=min(model.retries.patience, _PATIENCE_S))

    async def close_unused(self, used: Iterable[Model | None]) -> None:
        """Close the models that are neither in use nor what a name stands for now.

        With the keys that a client told a name stands for one until nobody has used it from one time to the next.
        """
        needed = {id(model) for model in used}
        unused = self._of_clients(needed)
        for key in [key for key in unused if key in self._unused]:
            del self._models[key]
        self._unused = unused
        kept = needed | {id(model) for model in self._models.values()}
        self._opened_last = {name: model for name, model in self._opened_last.items() if id(model) in kept}
        for model in [each for each in self._adopted if id(each) not in kept]:
            self._adopted.remove(model)
            with trio.move_on_after(_CLOSE_TIMEOUT):
                await model.aclose()

    def _of_clients(self, needed: Container[int]) -> list[_Opened]:
        """Return which models that are not needed were opened with keys that a client told, or that count no more."""
        with suppress(ConfigError):
            usual = choice_of(with_keys(self._settings))
            return [key for key, model in self._models.items() if key[2] != usual and id(model) not in needed]
        return []

    async def close(self) -> None:
        with trio.move_on_after(_CLOSE_TIMEOUT, shield=True):
            for model in self._adopted:
                await model.aclose()


async def _warm(model: Model, settings: Settings) -> None:
    try:
        await model.warm()
        await learn_limits(model, settings)
    except ModelError:
        pass  # the first reply says it to somebody who listens
    except Exception:  # noqa: BLE001 - a library's; it ends a turn, not the daemon
        _log.exception("the model %s could not be warmed up", model.name)


def _changed_at(name: str) -> int:
    """Return when the file of a model that is one was last changed, in ns; 0 for every other model."""
    row = provider_of(name)
    if row is None or not row.is_file:
        return 0
    try:
        return os.stat(name.removeprefix(row.prefix)).st_mtime_ns
    except (OSError, ValueError):  # no such file, or a name that none can have
        return 0
