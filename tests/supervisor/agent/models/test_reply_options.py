"""What can be chosen of a model's replies, and what a request asks for then."""

from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models.model import ModelOptions
from supervisor.agent.models.model_facts import ModelFacts, model_facts
from supervisor.agent.models.reply_options import checked_choice, effort_switched, request_options, suggested, thinks
from supervisor.config.config_keys import Config
from supervisor.config.model_keys import ModelConfig
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

HAIKU: Final = "claude-haiku-5-5"


def facts(name: str = HAIKU, **own: Any) -> ModelFacts:
    config = Config(models={name: ModelConfig(**own)}) if own else Config()
    return model_facts(name, Settings(config, Path("/x/config.toml"), Path("/x"), {"ANTHROPIC_BASE_URL": "http://x"}))


def test_only_what_a_model_has_is_offered() -> None:
    assert [*suggested(facts())] == ["effort", "max_tokens"]
    assert [*suggested(facts("claude-haiku-4-5"))] == ["effort", "max_tokens", "temperature"]
    assert [*suggested(facts("llama"))] == ["max_tokens", "temperature"]
    assert [*suggested(facts("llama", effort="low"))] == ["effort", "max_tokens", "temperature"]
    assert checked_choice(facts("llama", effort="low"), "effort", "high") == ("effort", "high")
    assert request_options(facts("llama", effort="max"), {}).effort == "max"
    assert suggested(facts("offline")) == suggested(facts("scripted:x")) == {}


def test_no_length_is_suggested_that_the_model_has_not() -> None:
    assert max(map(int, suggested(facts())["max_tokens"])) == 128_000
    assert suggested(facts("llama"))["max_tokens"] == ["2048", "4096", "8192"]


REQUESTS: Final = [
    ({}, {}, ModelOptions(32_000)),
    ({}, {"effort": "high", "max_tokens": "1000"}, ModelOptions(1_000, "high")),
    ({"effort": "low", "max_tokens": 500}, {}, ModelOptions(500, "low")),
    ({"effort": "low", "max_tokens": 500}, {"effort": "none", "max_tokens": "400"}, ModelOptions(400, "none")),
    ({"max_tokens": 500}, {"max_tokens": "5000"}, ModelOptions(500)),
    ({"temperature": 0.5}, {}, ModelOptions(32_000, temperature=0.5)),
    ({"temperature": 0.5}, {"temperature": "0"}, ModelOptions(32_000, temperature=0.0)),
]


@pytest.mark.parametrize(("own", "chosen", "expected"), REQUESTS)
def test_the_session_s_choice_wins_over_the_configured_one(
    own: dict[str, Any], chosen: dict[str, str], expected: ModelOptions
) -> None:
    assert request_options(facts(**own), chosen) == expected


SWITCHES: Final = [
    # a model, what is configured and chosen, whether it thinks; the effort that switches that off, and on again
    (HAIKU, "", "", True, "none", "default"),
    (HAIKU, "", "low", True, "none", "low"),
    (HAIKU, "none", "", False, "default", "high"),
    (HAIKU, "none", "low", True, "none", "low"),
    ("claude-haiku-4-5", "", "", False, "default", "high"),
]


@pytest.mark.parametrize(("name", "own", "chosen", "thinking", "off", "on"), SWITCHES)
def test_a_switch_changes_as_little_as_it_must(
    name: str, own: Any, chosen: str, thinking: bool, off: str, on: str
) -> None:
    known, choice = facts(name, effort=own), {"effort": chosen} if chosen else {}
    assert thinks(known, choice) is thinking
    assert effort_switched(known, choice, False) == off
    assert effort_switched(known, choice, True) == on
    assert thinks(known, {"effort": on}) or on == "default"


def test_there_is_room_to_think_where_a_model_does() -> None:
    assert request_options(facts("claude-haiku-4-5"), {}) == ModelOptions(8_192)
    assert request_options(facts("claude-haiku-4-5"), {"effort": "high"}) == ModelOptions(32_000, "high")
    assert request_options(facts(), {"effort": "none"}) == ModelOptions(8_192, "none")


def test_a_choice_that_another_model_had_stands_by() -> None:
    chosen = {"effort": "xhigh", "max_tokens": "64000"}
    assert request_options(facts("claude-haiku-4-5", effort="low"), chosen) == ModelOptions(64_000, "low")
    assert request_options(facts("llama"), {"max_tokens": "64000"}) == ModelOptions(8_192)
    assert request_options(facts(), chosen) == ModelOptions(64_000, "xhigh")


def test_what_is_configured_for_an_unknown_model_is_asked_for() -> None:
    assert request_options(facts("llama", effort="high"), {}) == ModelOptions(8_192, "high")


REFUSED: Final = [
    ("effort", "very", "one of none, low"),
    ("effort", "", "one of"),
    ("max_tokens", "0", "from 1 to 128000"),
    ("max_tokens", "128001", "from 1 to 128000"),
    ("max_tokens", "-1", "from 1 to"),
    ("max_tokens", "1e3", "from 1 to"),
    ("max_tokens", "٣", "from 1 to"),
    ("max_tokens", "9" * 5000, "from 1 to"),
    ("temperature", "1", "has no option 'temperature'"),
    ("model", "x", "has no option 'model'"),
]


@pytest.mark.parametrize(("option", "value", "words"), REFUSED, ids=[f"{row[0]} {row[1][:9]}" for row in REFUSED])
def test_a_choice_that_the_model_does_not_have_is_refused(option: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        checked_choice(facts(), option, value)


@pytest.mark.parametrize("value", ["-0.1", "2.1", "nan", "inf", "warm", ""])
def test_a_temperature_is_a_number_in_its_range(value: str) -> None:
    with pytest.raises(ConfigError, match="a number from 0 to 2"):
        checked_choice(facts("llama"), "temperature", value)


def test_default_takes_a_choice_back() -> None:
    assert checked_choice(facts(), "effort", "default") == ("effort", "")
    assert checked_choice(facts(), "max_tokens", "128000") == ("max_tokens", "128000")
