"""Thinking, effort and temperature as the Messages API takes them, by what the catalogue says of a model. Pure.

Rule: a request never says what its model refuses. With thinking there is no temperature, and its budget is below the
longest reply. A loop of tool calls that was begun without thinking is ended without it, where a model wants that.
Thinking is asked for as a summary, or nobody could be shown any. What no longer fits what stands before it, because
tools have changed, the server drops instead of refusing the request.

Sources: https://platform.claude.com/docs/en/build-with-claude/thinking, /effort, /extended-thinking and
/preserved-thinking there, and `ThinkingTypes` of the official client.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from supervisor.agent.models.model import Message, ModelOptions
from supervisor.agent.models.model_catalog import namesake_of
from supervisor.config.model_keys import Effort

THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks that the API refuses to mark for its cache, and takes back only as it has signed them."""
BETA: Final = "anthropic-beta"
_BETAS: Final[Mapping[str, str]] = MappingProxyType(
    {"budget": "interleaved-thinking-2025-05-14", "bound": "thinking-binding-controls-2026-08-01"}
)
"""The first lets a model think between tool calls, as those without a budget do; the second lets the server drop."""
_BUDGETS: Final[Mapping[Effort, int]] = MappingProxyType(
    {"low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
)
"""Tokens of thinking, for models that take no effort."""
_SMALLEST_BUDGET: Final = 1_024
_OFF: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {"adaptive": {"type": "disabled"}, "between_tools": {"type": "between_tools"}}
)
"""How models that think by themselves are told not to."""


class ReplyParameters(NamedTuple):
    """What a request says of its reply."""

    members: Mapping[str, Any]
    """Of its body."""
    takes_thinking: bool
    """The thinking of earlier replies may come back."""


def beta_headers(model: str) -> Mapping[str, str]:
    """Return the headers that requests to a model carry so that it takes what is said of its thinking."""
    entry = namesake_of(model)
    if entry is None:
        return {}
    named = [_BETAS[entry.thinking]] if entry.thinking in _BETAS else []
    named += [_BETAS["bound"]] if entry.bound else []
    return {BETA: ",".join(named)} if named else {}


def reply_parameters(options: ModelOptions, model: str, messages: Sequence[Message]) -> ReplyParameters:
    """Return what a request to `model` says of its reply.

    A model of which nothing is known is taken for one that thinks by an effort, if one was chosen.
    """
    entry, effort = namesake_of(model), options.effort
    style = entry.thinking if entry is not None else "adaptive" if effort not in ("", "none") else ""
    members: dict[str, Any] = {"max_tokens": options.max_tokens}
    takes_thinking = True
    if style == "budget":
        budget = min(_BUDGETS.get(effort, 0), options.max_tokens // 2)
        if budget >= _SMALLEST_BUDGET and _may_begin_to_think(messages):
            members["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif style in _OFF and effort == "none":
        members["thinking"], takes_thinking = dict(_OFF[style]), False
    elif style not in ("", "effort") and (effort not in ("", "none") or (entry is not None and entry.thinks)):
        members["thinking"] = {"type": "adaptive", "display": "summarized"}
        if entry is not None and entry.bound:
            members["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        if effort not in ("", "none"):
            members["output_config"] = {"effort": effort}
    thinks = members.get("thinking", {}).get("type") in ("enabled", "adaptive")
    if options.temperature is not None and not thinks and (entry is None or entry.temperature):
        members["temperature"] = min(options.temperature, 1.0)  # the API's range ends there
    return ReplyParameters(members, takes_thinking)


def _may_begin_to_think(messages: Sequence[Message]) -> bool:
    """Say whether no loop of tool calls is open, or the open one was begun with thinking."""
    begin = len(messages)
    while begin >= 2 and _is_of_results(messages[begin - 1]):  # noqa: PLR2004 - a reply and its results
        begin -= 2
    return begin == len(messages) or messages[begin]["content"][0]["type"] in THOUGHTS


def _is_of_results(message: Message) -> bool:
    content = message["content"]
    return isinstance(content, list) and bool(content) and content[0]["type"] == "tool_result"
