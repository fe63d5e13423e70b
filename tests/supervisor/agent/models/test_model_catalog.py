"""The catalogue is sorted, sourced and dated, and a name finds what is said of it and of nothing else."""

from datetime import date
from typing import Final
from urllib.parse import urlsplit

import pytest

from supervisor.agent.models.model_catalog import CatalogEntry, entries, entry_of, namesake_of
from supervisor.config.config_keys import DEFAULT_MODEL
from supervisor.config.model_keys import rate_of
from tests.each_row import each_row

OURS: Final = "Strongroom"
SOURCES: Final = {
    "anthropic": {"platform.claude.com"},
    "gemini": {"ai.google.dev", "docs.cloud.google.com"},
    "openai": {"developers.openai.com"},
}


@each_row("entry", entries(), ids=[entry.begins for entry in entries()])
def test_each_entry_is_of_one_piece(entry: CatalogEntry) -> None:
    assert 0 < entry.max_tokens <= entry.window
    assert date(2026, 1, 1) <= entry.checked
    provider = entry.begins.partition("/")[0]
    assert entry.source == OURS if provider in ("offline", "scripted") else urlsplit(entry.source).scheme == "https"
    assert entry.source == OURS or urlsplit(entry.source).hostname in SOURCES[provider]
    assert bool(entry.efforts) == bool(entry.thinking)
    assert ("none" in entry.efforts) <= (entry.thinking != "always")
    assert "" not in entry.efforts
    assert entry.thinks <= bool(entry.thinking)
    assert entry.bound <= (entry.begins.startswith("anthropic/") and entry.thinks)


@each_row("entry", entries(), ids=[entry.begins for entry in entries()])
def test_each_price_is_one(entry: CatalogEntry) -> None:
    price = entry.prices
    if price is None:
        assert entry.source == OURS
        return
    assert price == price.completed(None)
    assert 0 <= rate_of(price, "cache_read") <= price.input <= price.output
    assert rate_of(price, "cache_write") == 0 or rate_of(price, "cache_write") >= price.input
    if price.long_prompt is not None:
        assert price.long_prompt.tokens < entry.window
        for rate in ("input", "output", "cache_read", "cache_write"):
            assert getattr(price.long_prompt, rate) >= getattr(price, rate)


def test_entries_are_sorted_and_none_stands_twice() -> None:
    names = [entry.begins for entry in entries()]
    assert names == sorted(set(names))


def test_the_default_model_is_in_it() -> None:
    entry = entry_of(f"anthropic/{DEFAULT_MODEL}")
    assert entry is not None
    assert entry.prices is not None


FOUND: Final = [
    ("anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5"),
    ("anthropic/claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
    ("anthropic/claude-sonnet-5-5-20260928", "anthropic/claude-sonnet-5-5"),
    ("openai/gpt-5.4-mini", "openai/gpt-5.4-mini"),
    ("openai/gpt-5.4-nano", "openai/gpt-5.4"),
    ("anthropic/claude-sonnet-50", None),
    ("openai/gpt-5.45", None),
    ("anthropic/claude", None),
    ("gateway/claude-sonnet-5", None),
    ("offline", "offline"),
    ("", None),
]


@pytest.mark.parametrize(("key", "begins"), FOUND)
def test_the_longest_beginning_counts(key: str, begins: str | None) -> None:
    entry = entry_of(key)
    assert (entry.begins if entry is not None else None) == begins


def test_a_namesake_is_found_whoever_serves_it() -> None:
    entry = namesake_of("claude-haiku-4-5-20251001")
    assert entry is not None
    assert entry.begins == "anthropic/claude-haiku-4-5"
    assert namesake_of("llama") is namesake_of("") is None
