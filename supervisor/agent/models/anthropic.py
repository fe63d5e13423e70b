"""Anthropic as a provider: claude-..., or any model of a server that speaks the Messages API."""

from typing import Final

from supervisor.agent.models.provider import Provider

PROVIDER: Final = Provider(
    prefix="anthropic/",
    alias="claude-",
    rest="...",
    key="ANTHROPIC_API_KEY",
    server="ANTHROPIC_BASE_URL",
    any_name=True,
    speaks="the Messages API",
    format="messages",
    base_url="https://api.anthropic.com",
    key_page="https://console.anthropic.com/settings/keys",
)
