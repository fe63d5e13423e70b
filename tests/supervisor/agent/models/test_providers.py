"""From a name on the command line to a model, without paying for the others."""

from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models.providers import open_model
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.config.config_keys import Config, NetworkConfig
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError


def settings(*, model: str | None = None, key: str | None = None, url: str | None = None) -> Settings:
    environment = {"ANTHROPIC_API_KEY": key or "", "ANTHROPIC_BASE_URL": url or ""}
    return Settings(Config(model=model), Path("/x/config.toml"), Path("/x"), environment)


def test_offline_needs_nothing() -> None:
    assert open_model("offline", settings()).name == "offline"


def test_a_script_is_opened_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a:b.jsonl"
    file.write_text('{"text": "hi"}\n')
    model = open_model(f"scripted:{file}", settings())
    assert model.name == f"scripted:{file}"


@pytest.mark.parametrize(
    ("name", "key", "url"),
    [
        ("claude-x", "k", None),
        ("claude-x", None, "http://localhost:1"),
        ("llama", None, "http://localhost:1"),
        ("offlinexyz", None, "http://localhost:1"),
        ("two\nlines", None, "http://localhost:1"),
    ],
    ids=["a key", "a server of one's own", "any name on it", "one like offline's on it", "one with a line end on it"],
)
def test_the_messages_api_needs_a_key_or_a_server(name: str, key: str | None, url: str | None) -> None:
    model = open_model(name, settings(key=key, url=url))
    assert isinstance(model, RemoteModel)
    assert model.name == name


def test_the_configured_model_is_the_default(tmp_path: Path) -> None:
    assert open_model(None, settings(model="offline")).name == "offline"


def test_the_default_of_all_is_a_model_of_the_api() -> None:
    assert open_model(None, settings(key="k")).name == "claude-haiku-5-5"


REFUSED: Final = [
    (None, {}, "needs a key: `strongroom login anthropic` keeps one, or set ANTHROPIC_API_KEY"),
    ("claude-x", {}, "--model offline needs none"),
    ("gpt", {"key": "k"}, "No model 'gpt'"),
    ("Offline", {}, "No model 'Offline'"),
    ("offlinexyz", {}, "No model 'offlinexyz'"),
    ("offlinexyz", {"key": "k"}, "No model 'offlinexyz'"),
    ("scripted:", {}, "No model 'scripted:'"),
    ("claude-", {"key": "k"}, "No model 'claude-'"),
    ("openai/", {"key": "k", "url": "http://localhost:1"}, "No model 'openai/'"),
    ("gemini/a\nb", {"key": "k", "url": "http://localhost:1"}, "No model 'gemini/a"),
    ("claude-x\n", {"key": "k"}, "No model"),
    ("scripted:a\0b", {}, "cannot be read: embedded null byte"),
    ("scripted:/does/not/exist", {}, "cannot be read"),
    ("claude-x", {"key": "a b"}, "check ANTHROPIC_API_KEY"),
    ("claude-x", {"key": "k", "url": "ftp://x"}, "must look like https://host"),
]


@pytest.mark.parametrize(("name", "has", "words"), REFUSED, ids=[f"{name} {has}" for name, has, _ in REFUSED])
def test_a_model_that_cannot_be_used_is_refused_at_once(name: str | None, has: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(name, settings(key=has.get("key"), url=has.get("url")))
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["claude-x", "openai/x", "gemini/x", "ollama/x"])
def test_every_provider_is_asked_through_the_operators_proxy_and_by_their_certificates(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "company.pem").write_text("-----BEGIN CERTIFICATE-----")
    network = NetworkConfig("http://proxy.example.org:3128", "company.pem")
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY"), "a-key")
    model: Any = open_model(name, Settings(Config(network=network), tmp_path / "config.toml", tmp_path, keys))
    model = getattr(model, "inner", model)  # Ollama's has two
    assert (model.proxy, model.ca_file) == ("http://proxy.example.org:3128", str(tmp_path / "company.pem"))
    assert (model.api_key, model.served_as) == ("a-key", name.rpartition("/")[2])
