"""Adjustments of requests to the Responses API, which some of its servers or models refuse as they are.

Rule: as in `chat_adjustments.py`: pure, a row each, of public reports.
"""

from functools import partial
from typing import Final

from supervisor.agent.models.adjustment import Json, of_usual_length, row, without


def _of_reasoning(name: str, body: Json) -> Json:
    """Return a body whose `reasoning` lacks a field, and which has none where nothing else is left of it."""
    if name not in (reasoning := body.get("reasoning", {})):
        return body
    left = without(name, reasoning)
    return {**body, "reasoning": left} if left else without("reasoning", body)


def _lower_effort(effort: str, lower: str, body: Json) -> Json:
    reasoning = body.get("reasoning", {})
    return {**body, "reasoning": {**reasoning, "effort": lower}} if reasoning.get("effort") == effort else body


def _without_thoughts(body: Json) -> Json:
    """Leave the reasoning out, and with it the ids of the items that belong to it."""
    if all(item["type"] != "reasoning" for item in body["input"]):
        return body
    return {**body, "input": [without("id", item) for item in body["input"] if item["type"] != "reasoning"]}


def _without_strict(body: Json) -> Json:
    if "tools" not in body or all("strict" not in tool for tool in body["tools"]):
        return body
    return {**body, "tools": [without("strict", tool) for tool in body["tools"]]}


ADJUSTMENTS: Final = (
    # what another organization's key, or another server, has encrypted
    row(
        r"not persisted|decrypt|invalid_encrypted_content|encrypted content.{0,60}verified|without its required",
        _without_thoughts,
    ),
    # models that do not reason
    row(r"encrypted[_ ]content|\binclude\b", partial(without, "include")),
    row(r"reasoning[_. ]summar|organization must be verified", partial(_of_reasoning, "summary")),
    row(r"reasoning[_.]effort|\bmax\b", partial(_lower_effort, "max", "xhigh")),
    row(r"reasoning[_.]effort|\bxhigh\b", partial(_lower_effort, "xhigh", "high")),
    row(r"reasoning[_.]effort", partial(_of_reasoning, "effort")),
    row(r"\breasoning\b", partial(without, "reasoning")),
    # models that reason
    row(r"\btemperature\b", partial(without, "temperature")),
    row(r"max_output_tokens", partial(without, "max_output_tokens"), unbounded=True),
    row(r"max_output_tokens", of_usual_length),
    # other servers
    row(r"\bstrict\b", _without_strict),
    row(r"\bstore\b", partial(without, "store")),
    row(r"prompt_cache_key", partial(without, "prompt_cache_key")),
)
