"""OpenAI as a provider: openai/..., or any model of a server that speaks Chat Completions.

Rule: Responses at the vendor, which keep its models' reasoning; Chat Completions anywhere else, where a key is sent if
there is one.
"""

from typing import Final

from supervisor.agent.models.provider import Provider

PROVIDER: Final = Provider(
    prefix="openai/",
    rest="...",
    key="OPENAI_API_KEY",
    server="OPENAI_BASE_URL",
    speaks="Chat Completions",
    format="responses",
    format_elsewhere="chat",
    base_url="https://api.openai.com/v1",
    key_page="https://platform.openai.com/api-keys",
)
