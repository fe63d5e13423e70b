"""The keys of `config.toml` that are about a model: its figures, and what its tokens cost.

Rule: as `config_keys.py`. The catalogue of models holds prices in the same form, so that there is one way to say them.
"""

from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

Effort = Literal["", "none", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks before it answers; "" leaves it to the provider, "none" is not at all."""
ToolUseForm = Literal["native", "text"]
"""How a model calls tools: as its API has it, or in its text."""

_PerMillion = Annotated[float, Meta(ge=0, le=1_000_000)]
_UNTOLD: Final = {"cache_read": 1.0, "cache_write": 1.25}
"""The price of cached tokens, as a share of that of input, where nobody says it."""


class LongPromptPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens cost in a request whose prompt is long, those of its reply too."""

    tokens: Annotated[int, Meta(ge=1)]
    """Above so many of the prompt, cached ones included."""
    input: _PerMillion
    output: _PerMillion
    cache_read: _PerMillion | None = None
    cache_write: _PerMillion | None = None


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens of a model cost, where you pay another price than the catalogue's.

    The same can stand as `prices` in `[models.NAME]`, which wins. What it does not say of cached tokens is in
    proportion as in the catalogue.
    """

    input: Annotated[_PerMillion, Meta(examples=[1.0])]
    output: Annotated[_PerMillion, Meta(examples=[5.0])]
    cache_read: Annotated[_PerMillion | None, Meta(examples=[0.1])] = None
    cache_write: Annotated[_PerMillion | None, Meta(examples=[1.25])] = None
    currency: Annotated[str, Meta(min_length=1, max_length=8)] = "USD"
    long_prompt: Annotated[
        LongPromptPrice | None,
        Meta(
            description="What holds for a request whose prompt has more than `tokens` tokens.",
            examples=[{"tokens": 200_000, "input": 2.0, "output": 7.5}],
        ),
    ] = None

    def at(self, prompt: int) -> "Price | LongPromptPrice":
        """Return what holds for a request with so many tokens in its prompt."""
        return self.long_prompt if self.long_prompt is not None and prompt > self.long_prompt.tokens else self

    def completed(self, usual: "Price | None") -> "Price":
        """Return it with what it does not say of cached tokens, in proportion to the `usual` one if that is known."""
        long_prompt = None if self.long_prompt is None else _completed(self.long_prompt, usual)
        return msgspec.structs.replace(_completed(self, usual), long_prompt=long_prompt)


_Rates = TypeVar("_Rates", Price, LongPromptPrice)


def rate_of(rates: Price | LongPromptPrice, kind: str) -> float:
    """Return the price of "input", "output", "cache_read" or "cache_write".

    Where it is not known of cached tokens, it is more rather than less: that of input, or what Claude's cache costs.
    """
    told: float | None = getattr(rates, kind)
    return rates.input * _UNTOLD[kind] if told is None else told


def _completed(rates: _Rates, usual: Price | None) -> _Rates:
    known: Price | LongPromptPrice = usual if usual is not None and usual.input else rates
    share = rates.input / known.input if known.input else 1.0
    untold = [kind for kind in _UNTOLD if getattr(rates, kind) is None]
    return msgspec.structs.replace(rates, **{kind: round(rate_of(known, kind) * share, 6) for kind in untold})


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's figures and choices, where others than the catalogue's hold; `strongroom models` shows both."""

    window: Annotated[
        Annotated[int, Meta(ge=1024)] | None,
        Meta(description="Tokens that its context holds, prompt and reply.", examples=[32_768]),
    ] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The longest reply that it is asked for, thinking included.", examples=[16_384]),
    ] = None
    effort: Annotated[
        Effort | None, Meta(description="How much it thinks, where the session does not say.", examples=["high"])
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="How freely it chooses its words.", examples=[0.2])
    ] = None
    tools: Annotated[
        ToolUseForm | None,
        Meta(description='"text": it has no tool use of its own, and calls tools in its text.', examples=["text"]),
    ] = None
    images: Annotated[bool | None, Meta(description="Whether it can see images.", examples=[True])] = None
    documents: Annotated[
        bool | None, Meta(description="Whether it takes PDF as it is; else it is given the text.", examples=[True])
    ] = None
    prices: Annotated[
        Price | None, Meta(description="What a million tokens cost.", examples=[{"input": 1.0, "output": 5.0}])
    ] = None
