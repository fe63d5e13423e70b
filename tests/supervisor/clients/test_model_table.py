"""`strongroom models`: what can be used now, and what to set for the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.clients.model_table import as_json, available_models, model_lines
from supervisor.config.config_keys import Config, ProviderConfig
from supervisor.config.model_keys import ModelConfig, Price
from supervisor.config.settings import Settings
from supervisor.display.columns import width
from tests.forked import ForkedStrongroom
from tests.supervisor.agent.models.test_server_listing import MESSAGES, listing_server


def settings(environment: dict[str, str], **config: Any) -> Settings:
    return Settings(Config(**config), Path("/x/config.toml"), Path("/x"), environment)


def shown(here: Settings, columns: int = 200) -> str:
    return "\n".join(model_lines(available_models(here), columns))


def test_without_any_key_it_says_what_to_set() -> None:
    text = shown(settings({}, providers={"own": ProviderConfig("http://127.0.0.1:1", "chat", "OWN_KEY")}))
    assert (
        "anthropic: No key: `strongroom login anthropic` keeps one, or set ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL for"
        in text
    )
    assert "own: No key: `strongroom login own` keeps one, or set OWN_KEY." in text
    assert "claude" not in text
    assert text.startswith("offline\n")


def test_what_a_server_lists_stands_beside_what_is_known() -> None:
    document = {"data": [*MESSAGES, {"id": "claude-haiku-5-5", "max_input_tokens": 500_000}]}
    with listing_server(200, json.dumps(document)) as (url, _):
        here = settings({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url})
        found = {each.name: each for each in available_models(here)}["anthropic"]
        text = shown(here)
    facts = {model.facts.name: model.facts for model in found.models}
    assert (facts["claude-haiku-5-5"].window, facts["claude-haiku-5-5"].sources["window"]) == (500_000, "server")
    assert (facts["claude-a"].window, facts["anthropic/b"].window) == (1_000_000, 32_768)
    assert {model.facts.name for model in found.models if model.listed} == {
        "claude-a",
        "anthropic/b",
        "claude-haiku-5-5",
    }
    line = next(line for line in text.splitlines() if "claude-opus-5 " in line)
    assert "its server does not list it" in line
    assert "[window: server; longest, prices, abilities: catalogue of 20" in " ".join(text.split())


def test_a_server_that_does_not_answer_is_a_line_and_its_models_are_told_all_the_same() -> None:
    text = shown(settings({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}))
    assert "its models are not listed: http://127.0.0.1:1 cannot be reached: Connection refused" in text
    assert "claude-haiku-5-5" in text


def test_what_is_configured_is_listed_with_its_own_figures() -> None:
    own = ModelConfig(window=4096, tools="text", prices=Price(3.0, 6.0, currency="EUR"))
    here = settings({}, providers={"own": ProviderConfig("http://127.0.0.1:1", "messages")}, models={"own/m": own})
    line = next(line for line in shown(here).splitlines() if "own/m" in line)
    assert "4,096" in line
    assert "3 EUR/6 EUR" in line
    assert "tools as text" in line
    assert "[window, prices: configuration; longest, abilities: assumed]" in line


def test_no_line_is_too_wide() -> None:
    here = settings({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})
    for columns in (40, 80, 120):
        assert all(width(line) <= columns for line in shown(here, columns).splitlines())


def test_json_has_the_same() -> None:
    found = available_models(settings({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}))
    (provider,) = [each for each in as_json(found)["providers"] if each["name"] == "anthropic"]
    (haiku,) = [each for each in provider["models"] if each["name"] == "claude-haiku-5-5"]
    assert haiku["window"] == 1_000_000
    assert haiku["prices"]["long_prompt"]["tokens"] == 100_000
    assert haiku["efforts"][0] == "none"
    assert (provider["available"], bool(provider["problem"])) == (True, True)


@pytest.mark.parametrize("arguments", [["models"], ["models", "--json"]])
def test_the_command_prints_them(home: Path, tmp_path: Path, arguments: list[str]) -> None:
    done = ForkedStrongroom(home, tmp_path).run(*arguments)
    assert (done.code, done.err) == (0, "")
    assert "No key: `strongroom login anthropic` keeps one, or set ANTHROPIC_API_KEY" in done.out
    if "--json" in arguments:
        assert {each["name"] for each in json.loads(done.out)["providers"]} >= {"offline", "anthropic"}
