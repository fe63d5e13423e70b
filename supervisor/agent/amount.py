"""Amounts that requests use: tokens, money and time. Pure.

Rule: exact. Money is counted in whole numbers, a millionth of a millionth of the currency each: a price of a million
tokens with six decimals is a whole number of these for each token.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from supervisor.agent.models.model_cost import COUNTED
from supervisor.config.model_keys import LongPromptPrice, Price, rate_of
from supervisor.journal.facts import Compacted, Replied

UNIT: Final = 10**12
"""Of the currency's units of money that are counted."""
_PER_TOKEN: Final = 10**6
"""Of them in a token's price, for each of the currency in a million tokens' price."""


class Amount(msgspec.Struct, frozen=True):
    """What was used, or may be."""

    tokens: int = 0
    cost: int = 0
    """In `UNIT`ths of the currency."""
    ms: int = 0

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.cost + other.cost, self.ms + other.ms)

    def minus(self, other: "Amount") -> "Amount":
        """Return the difference, which may be negative."""
        return Amount(self.tokens - other.tokens, self.cost - other.cost, self.ms - other.ms)


NOTHING: Final = Amount()


class TokenPrice(msgspec.Struct, frozen=True):
    """What one token costs, in `UNIT`ths of the currency; of input the dearest kind, as nobody knows beforehand."""

    input: int
    output: int

    @classmethod
    def of(cls, price: Price) -> "TokenPrice":
        rates: list[Price | LongPromptPrice] = [price, *([price.long_prompt] if price.long_prompt else [])]
        inputs = [_per_token(rate_of(each, kind)) for each in rates for kind in COUNTED.values() if kind != "output"]
        return cls(max(inputs), max(_per_token(each.output) for each in rates))


def tokens_in(usage: Mapping[str, int]) -> int:
    """Return all tokens of a reply that are billed."""
    return sum(usage.get(name, 0) for name in COUNTED)


def used_by(replied: Replied | Compacted, reserved: Amount = NOTHING) -> Amount:
    """Return what a reply has used; where its server does not say so of prompt and reply, all that was `reserved`."""
    tokens, written = tokens_in(replied.usage), replied.usage.get("output_tokens", 0)
    is_remote = isinstance(replied, Compacted) or replied.origin is not None
    if is_remote and not 0 < written < tokens:
        return Amount(max(tokens, reserved.tokens), max(replied.cost, reserved.cost), replied.ms)
    return Amount(tokens, replied.cost, replied.ms)


def cost_of(usage: Mapping[str, int], price: Price) -> int:
    """Return what a reply costs, in `UNIT`ths of the currency."""
    rates = price.at(tokens_in(usage) - usage.get("output_tokens", 0))
    return sum(usage.get(name, 0) * _per_token(rate_of(rates, kind)) for name, kind in COUNTED.items())


def _per_token(price: float) -> int:
    """Return a million tokens' price as that of one, rounded up."""
    exact = round(price * _PER_TOKEN, 6)
    return int(exact) + (exact > int(exact))
