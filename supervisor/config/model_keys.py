"""The keys of `config.toml` that are about a model: its figures, and what its tokens cost.

Rule: as `config_keys.py`. The catalogue of models holds prices in the same form, so that there is one way to say them.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Effort = Literal["", "none", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks before it answers; "" leaves it to the provider, "none" is not at all."""
ToolUseForm = Literal["native", "text"]
"""How a model calls tools: as its API has it, or in its text."""

_PerMillion = Annotated[float, Meta(ge=0, le=1_000_000)]


class LongPromptPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens cost in a request whose prompt is long, those of its reply too."""

    tokens: Annotated[int, Meta(ge=1)]
    """Above so many of the prompt, cached ones included."""
    input: _PerMillion
    output: _PerMillion
    cache_read: _PerMillion = 0.0
    cache_write: _PerMillion = 0.0


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens of a model cost, where you pay another price than the catalogue's.

    The same can stand as `prices` in `[models.NAME]`, which wins.
    """

    input: Annotated[_PerMillion, Meta(examples=[1.0])]
    output: Annotated[_PerMillion, Meta(examples=[5.0])]
    cache_read: _PerMillion = 0.0
    cache_write: _PerMillion = 0.0
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
