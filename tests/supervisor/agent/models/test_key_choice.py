"""Which key counts, and for which server: the person's environment, then what was kept, then the process's own."""

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from supervisor.agent.models.key_choice import source_of, variable_names, with_keys
from supervisor.agent.models.providers import known_providers, provider_of, secrets
from supervisor.config.config_keys import Config, ProviderConfig
from supervisor.config.key_store import KeptKey, KeyStore
from supervisor.config.settings import Settings

VENDOR: Final = "https://api.anthropic.com"
KEY, SERVER = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"


class Choice(NamedTuple):
    name: str
    own: dict[str, str]
    """The environment of the process."""
    kept: str
    """The server that a key is kept for; empty for none."""
    told: dict[str, str]
    """The environment of the person who asks."""
    key: str
    server: str = VENDOR


CHOICES: Final = [
    Choice("nothing anywhere", {}, "", {}, ""),
    Choice("the person's goes first", {KEY: "own"}, VENDOR, {KEY: "told"}, "told"),
    Choice("then the kept one", {KEY: "own"}, VENDOR, {}, "kept"),
    Choice("then the process's", {KEY: "own"}, "", {}, "own"),
    Choice("the person's key goes to the person's server", {SERVER: "http://h:1"}, "", {KEY: "told"}, "told"),
    Choice("both of the person", {KEY: "own"}, "", {KEY: "told", SERVER: "http://h:2/v1"}, "told", "http://h:2/v1"),
    Choice("no other's key goes to a person's server", {KEY: "own"}, VENDOR, {SERVER: "http://h:2"}, "", "http://h:2"),
    Choice("the kept one goes to its server", {}, "http://h:2", {SERVER: "http://h:2/v1"}, "kept", "http://h:2/v1"),
    Choice("and to none that the process names", {SERVER: "http://h:1"}, VENDOR, {}, "", "http://h:1"),
    Choice("nor by another scheme", {SERVER: "http://api.anthropic.com"}, VENDOR, {}, "", "http://api.anthropic.com"),
    Choice("nor to what is no address", {SERVER: "nonsense"}, VENDOR, {}, "", "nonsense"),
    Choice(
        "the process's key stays with its server", {KEY: "own", SERVER: "http://h:1"}, VENDOR, {}, "own", "http://h:1"
    ),
]


def settings(home: Path, environment: dict[str, str], **config: ProviderConfig) -> Settings:
    return Settings(Config(providers=config), home / "config.toml", home, environment)


@pytest.mark.parametrize("case", CHOICES, ids=[case.name for case in CHOICES])
def test_the_key_that_counts_goes_to_its_server(case: Choice, tmp_path: Path) -> None:
    here = settings(tmp_path, case.own)
    if case.kept:
        KeyStore(here.keys_file).keep("anthropic", KeptKey("kept", case.kept))
    found = with_keys(here, case.told)
    row = provider_of("claude-x", found)
    assert row is not None
    assert (row.key_in(found), row.address(found)) == (case.key, case.server)
    assert case.key in ("", *secrets(found))


def test_a_provider_of_ones_own_never_has_the_key_of_another_of_its_name_or_variable(tmp_path: Path) -> None:
    same = ProviderConfig("http://h:1", "chat", "OPENAI_API_KEY")
    here = settings(tmp_path, {}, openai=same, gateway=same)
    KeyStore(here.keys_file).keep("openai", KeptKey("vendor's", "https://api.openai.com"))
    found = with_keys(here)
    assert {(row.identity, row.key_in(found)) for row in known_providers(found) if row.key_in(found)} == {
        (("openai", "https://api.openai.com/v1"), "vendor's")
    }


def test_where_a_key_comes_from_can_be_told(tmp_path: Path) -> None:
    here = settings(tmp_path, {"GOOGLE_API_KEY": "k"}, gateway=ProviderConfig("http://h:1", "chat", "GATEWAY_KEY"))
    KeyStore(here.keys_file).keep("gateway", KeptKey("kept", "http://h:1"))
    found = with_keys(here, here.environment)
    sources = {row.label: source_of(row, found) for row in known_providers(found) if row.key}
    assert sources == {"gateway": "kept", "gemini": "environment"} | dict.fromkeys(
        ["anthropic", "openai", "ollama"], "none"
    )
    assert {"GATEWAY_KEY", "GOOGLE_API_KEY", "GEMINI_BASE_URL"} <= set(variable_names(here))
    assert "kept" not in repr(found)
