"""OpenAI as a provider: which format is spoken where, and what is needed for it."""

from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models import chat_api, responses_api
from supervisor.agent.models.providers import open_model, secrets
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.config.config_keys import Config, ProviderConfig
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from tests.chat_server import ChatServer, chat_reply
from tests.responses_server import ResponsesServer, responses_reply
from tests.supervisor.asked_model import KEY
from tests.supervisor.model_requests import ASK

LOCAL: Final = "http://127.0.0.1:1/v1"


def settings(*, key: str = "", url: str = "", **providers: ProviderConfig) -> Settings:
    environment = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": url, "OWN_KEY": KEY}
    return Settings(Config(providers=providers), Path("/x/config.toml"), Path("/x"), environment)


def opened(name: str, here: Settings) -> RemoteModel:
    model = open_model(name, here)
    assert isinstance(model, RemoteModel)
    return model


@pytest.mark.parametrize(
    ("key", "url", "wire"),
    [
        ("k", "", responses_api.FORMAT),
        ("k", "https://api.openai.com/v1", responses_api.FORMAT),
        ("k", "https://API.openai.com:443/v1/", responses_api.FORMAT),
        ("k", "https://api.openai.com.evil.example/v1", chat_api.FORMAT),
        ("k", LOCAL, chat_api.FORMAT),
        ("", LOCAL, chat_api.FORMAT),
    ],
)
def test_the_vendor_is_asked_for_responses_and_others_for_chat_completions(key: str, url: str, wire: object) -> None:
    model = opened("openai/gpt-x/y", settings(key=key, url=url))
    assert (model.name, model.served_as, model.provider, model.wire) == ("openai/gpt-x/y", "gpt-x/y", "openai", wire)


@pytest.mark.parametrize("url", ["", "https://api.openai.com/v1"])
def test_the_vendor_needs_a_key(url: str) -> None:
    with pytest.raises(ConfigError, match="needs a key: `strongroom login openai` keeps one, or set OPENAI_API_KEY"):
        open_model("openai/gpt-x", settings(url=url))


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [
        ("openai/gpt-x", "http://[::1/v1", "not a URL"),
        ("openai/gpt-x", "127.0.0.1:8000", "must look like https://host"),
        ("openai/gpt-x", "http://me:CANARY@\n", "must look like https://host"),
        ("openai/", LOCAL, "No model"),
        ("gpt-x", LOCAL, "No model"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_at_once(name: str, url: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(name, settings(key="k", url=url))
    assert words in str(caught.value)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("key", ["a\nb", "a b", "é"])
def test_a_key_that_is_none_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match="check OPENAI_API_KEY") as caught:
        open_model("openai/gpt-x", settings(key=key))
    assert key not in str(caught.value)


def test_the_key_is_kept_out_of_logs() -> None:
    assert KEY in secrets(settings(key=KEY))


@pytest.mark.parametrize(
    ("form", "server", "answer"),
    [("chat", ChatServer(), chat_reply("done")), ("responses", ResponsesServer(), responses_reply("done"))],
)
async def test_a_server_that_the_operator_names_is_asked_in_its_format(form: Any, server: Any, answer: str) -> None:
    server.add(answer, answer)
    with server:
        for key in ("OWN_KEY", ""):
            config = ProviderConfig(server.url, form, key, {"X-Team": "notes"})
            async with aclosing(opened("own/some/model", settings(own=config))) as model:
                assert (await model.reply(ASK, lambda _: None)).text == "done"
    assert [request.headers.get("authorization") for request in server.requests] == [f"Bearer {KEY}", None]
    assert {request.headers["x-team"] for request in server.requests} == {"notes"}
    assert {body["model"] for body in server.bodies} == {"some/model"}
