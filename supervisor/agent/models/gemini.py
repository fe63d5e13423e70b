"""Google as a provider: gemini-..., by the API that the key of an AI Studio account opens."""

from typing import Final

from supervisor.agent.models.provider import Provider

PROVIDER: Final = Provider(
    prefix="gemini/",
    alias="gemini-",
    rest="...",
    key="GEMINI_API_KEY",
    other_key="GOOGLE_API_KEY",
    server="GEMINI_BASE_URL",
    format="gemini",
    base_url="https://generativelanguage.googleapis.com",
    key_page="https://aistudio.google.com/apikey",
)
