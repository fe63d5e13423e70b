"""What is known of a model: by whichever name, and from the source that counts."""

from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models.messages_api import messages_model
from supervisor.agent.models.model import CONTENTS
from supervisor.agent.models.model_facts import key_of, model_facts
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.server_limits import LearningModel, ServerLimits
from supervisor.config.config_keys import Config, ProviderConfig
from supervisor.config.model_keys import LongPromptPrice, ModelConfig, Price
from supervisor.config.settings import Settings

GATEWAY: Final = {"gateway": ProviderConfig("http://127.0.0.1:1", "messages")}


def settings(**config: Any) -> Settings:
    environment = {"ANTHROPIC_BASE_URL": "http://localhost:1"}
    return Settings(Config(providers=GATEWAY, **config), Path("/x/config.toml"), Path("/x"), environment)


KEYS: Final = [
    ("claude-x", "anthropic/claude-x"),
    ("anthropic/claude-x", "anthropic/claude-x"),
    ("gateway/claude-x", "gateway/claude-x"),
    ("llama", "anthropic/llama"),
    ("offline", "offline"),
    ("scripted:/a/b.jsonl", "scripted"),
]


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_a_model_is_one_by_whichever_name(name: str, key: str) -> None:
    assert key_of(name, settings()) == key


def test_the_catalogue_says_what_is_known() -> None:
    facts = model_facts("claude-haiku-5-5", settings())
    assert (facts.window, facts.max_tokens, facts.known) == (1_000_000, 128_000, True)
    assert facts.sources["window"].startswith("catalogue of 20")
    assert facts.prices is not None


def test_an_unknown_model_is_counted_on_for_little() -> None:
    facts = model_facts("gateway/llama", settings())
    assert (facts.window, facts.max_tokens, facts.known) == (32_768, 8_192, False)
    assert (facts.prices, facts.efforts, facts.images, facts.tools) == (None, (), False, "native")
    assert set(facts.sources.values()) == {"assumed"}


def test_a_server_s_own_word_wins_over_the_catalogue_and_the_operator_s_over_both() -> None:
    learned = ServerLimits(window=8_192, max_tokens=4_096)
    facts = model_facts("claude-haiku-5-5", settings(), learned)
    assert (facts.window, facts.max_tokens, facts.sources["window"]) == (8_192, 4_096, "server")
    own = settings(models={"anthropic/claude-haiku-5-5": ModelConfig(window=16_384)})
    facts = model_facts("claude-haiku-5-5", own, learned)
    assert (facts.window, facts.max_tokens) == (16_384, 4_096)
    assert (facts.sources["window"], facts.sources["max_tokens"]) == ("configuration", "server")


def test_no_reply_is_longer_than_the_window() -> None:
    facts = model_facts("claude-haiku-5-5", settings(), ServerLimits(window=4_096))
    assert facts.max_tokens == 4_096


def test_another_server_s_model_of_a_known_name_has_its_abilities_and_no_price() -> None:
    facts = model_facts("gateway/claude-haiku-5-5", settings())
    assert (facts.window, facts.thinking, facts.prices) == (1_000_000, "adaptive", None)
    assert facts.sources["window"].endswith("as anthropic/claude-haiku-5-5")


def test_a_price_may_stand_in_either_place() -> None:
    dear, cheap = Price(9.0, 9.0, 0.9, 9.0), Price(1.0, 1.0, 0.1, 1.0)
    for config in ({"prices": {"claude-x": dear}}, {"models": {"claude-x": ModelConfig(prices=dear)}}):
        facts = model_facts("anthropic/claude-x", settings(**config))
        assert (facts.prices, facts.sources["prices"]) == (dear, "configuration")
    both = settings(prices={"claude-x": dear}, models={"claude-x": ModelConfig(prices=cheap)})
    assert model_facts("claude-x", both).prices == cheap


OWN: Final = Price(0.05, 0.2, long_prompt=LongPromptPrice(9, 1.0, 1.0, 0.3))


@pytest.mark.parametrize(
    ("name", "cached"),
    [("claude-haiku-5-5", ((0.005, 0.0625), (0.3, 1.25))), ("gateway/claude-haiku-5-5", ((0.05, 0.0625), (0.3, 1.25)))],
    ids=["the catalogue's", "unknown"],
)
def test_cached_tokens_have_a_price_also_where_the_operator_says_none(name: str, cached: object) -> None:
    own = model_facts(name, settings(prices={name: OWN})).prices
    assert own is not None
    assert own.long_prompt is not None
    assert tuple((each.cache_read, each.cache_write) for each in (own, own.long_prompt)) == cached


def test_a_model_behind_http_may_learn_and_others_do_not() -> None:
    model = messages_model("m", "k", "http://localhost:1")
    assert isinstance(model, RemoteModel)
    assert isinstance(model, LearningModel)
    assert model.learned == ServerLimits()


def test_whether_a_model_sees_is_the_operators_to_say() -> None:
    assert model_facts("gateway/llama", settings()).sees == frozenset()
    for own, sees in ((ModelConfig(images=True), {"image"}), (ModelConfig(images=True, documents=True), CONTENTS)):
        assert model_facts("gateway/llama", settings(models={"gateway/llama": own})).sees == sees
    blind = ModelConfig(images=False, documents=False)
    assert model_facts("claude-haiku-5-5", settings()).sees == CONTENTS
    assert model_facts("claude-haiku-5-5", settings(models={"claude-haiku-5-5": blind})).sees == frozenset()
