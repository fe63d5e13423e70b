"""The cost of a request's tokens. Pure.

Rule: counts have the Messages API's names, whatever the provider. A prompt's length decides what all of its request
costs, so each request is priced by itself.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from supervisor.config.model_keys import Price, rate_of

COUNTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "input_tokens": "input",
        "output_tokens": "output",
        "cache_read_input_tokens": "cache_read",
        "cache_creation_input_tokens": "cache_write",
    }
)
"""The counts that fill the context, and what each is priced as."""
_REPLY: Final = "output_tokens"
_MILLION: Final = 1_000_000


def cost(price: Price, usage: Mapping[str, int]) -> float:
    """Return what one request has cost, in the price's currency."""
    prompt = sum(usage.get(name, 0) for name in COUNTED if name != _REPLY)
    rates = price.at(prompt)
    return sum(usage.get(name, 0) * rate_of(rates, field) for name, field in COUNTED.items()) / _MILLION
