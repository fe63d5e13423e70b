"""A model is opened as it is configured, and learns what its server holds without anybody waiting for that."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from supervisor.agent.models.model_opening import learn_limits, opened_model
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.server_limits import LearningModel, ServerLimits
from supervisor.agent.models.text_tools import TextToolsModel
from supervisor.config.config_keys import Config, ProviderConfig
from supervisor.config.model_keys import ModelConfig
from supervisor.config.settings import Settings
from supervisor.session.resources import SessionResources
from tests.supervisor.agent.models.test_server_listing import listing_server
from tests.supervisor.command import HANG_GUARD

TOLD: Final = json.dumps({"data": [{"id": "m", "max_input_tokens": 8_192, "max_tokens": 1_024}]})


def settings(url: str, **config: Any) -> Settings:
    own = {"own": ProviderConfig(url, "messages")}
    environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
    return Settings(Config(providers=own, **config), Path("/x/config.toml"), Path("/x"), environment)


def test_tools_are_as_they_are_configured() -> None:
    assert isinstance(opened_model("own/m", settings("http://127.0.0.1:1")), RemoteModel)
    as_text = settings("http://127.0.0.1:1", models={"own/m": ModelConfig(tools="text")})
    assert isinstance(opened_model("own/m", as_text), TextToolsModel)


@pytest.mark.parametrize("tools", ["native", "text"])
async def test_what_a_server_tells_is_learned(tools: str) -> None:
    with listing_server(200, TOLD) as (url, _), trio.fail_after(HANG_GUARD):
        here = settings(url, models={"own/m": ModelConfig(tools="text" if tools == "text" else "native")})
        model = opened_model("own/m", here)
        await learn_limits(model, here)
    assert isinstance(model, LearningModel)
    assert model.learned == ServerLimits(8_192, 1_024)


@pytest.mark.parametrize(
    ("name", "status", "asked"), [("own/other", 200, 1), ("own/m", 500, 1), ("claude-x", 200, 0), ("offline", 200, 0)]
)
async def test_nothing_is_learned_from_who_does_not_say(name: str, status: int, asked: int) -> None:
    with listing_server(status, TOLD) as (url, requests), trio.fail_after(HANG_GUARD):
        here = settings(url)
        model = opened_model(name, here)
        await learn_limits(model, here)
    assert getattr(model, "learned", ServerLimits()) == ServerLimits()
    assert len(requests) == asked


async def test_sessions_go_by_what_was_learned(resources: SessionResources) -> None:
    with listing_server(200, TOLD) as (url, _), trio.fail_after(HANG_GUARD):
        resources.use_settings(settings(url))
        assert resources.models.facts("own/m").window == 32_768
        resources.models.open("own/m")
        while resources.models.facts("own/m").window != 8_192:
            await trio.lowlevel.checkpoint()
    assert resources.models.facts("own/m").sources["window"] == "server"


@pytest.mark.parametrize("provider", ["own", "ollama"])
async def test_all_models_of_a_server_share_its_window_and_leave_longer_waits_to_conversations(
    resources: SessionResources, provider: str
) -> None:
    as_text = {f"{provider}/t": ModelConfig(tools="text")}
    resources.use_settings(settings("http://127.0.0.1:1", models=as_text))
    one, other = (resources.models.open(f"{provider}/{name}") for name in "mt")
    assert isinstance(other, TextToolsModel)
    ways: list[Any] = [getattr(each, "inner", each) for each in (one, other.inner)]
    assert ways[0].window is ways[1].window
    assert {each.retries.patience for each in ways} == {5.0}
