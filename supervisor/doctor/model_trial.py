"""Trial of one model: a tiny turn with a tool call, for real.

Rule: its tool is its own, and nothing runs. Two requests are made, the second with the answer to the first;
what they cost is said. What a server does not tell is said to be untold, and not guessed.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import trio

from supervisor.agent.models.model import Message, Model, ModelOptions, ModelRequest, Progress, Reply, Retrying, Usage
from supervisor.agent.models.model_cost import COUNTED, cost
from supervisor.agent.models.model_facts import ASSUMED, ModelFacts, model_facts
from supervisor.agent.models.model_opening import learn_limits, opened_model
from supervisor.agent.models.reply_options import request_options
from supervisor.agent.models.server_limits import NOTHING_LEARNED, LearningModel, ServerLimits
from supervisor.config.settings import Settings
from supervisor.doctor.table import CheckResult, CheckVerdict
from supervisor.errors import ConfigError, ModelError

_TIME_S: Final = 180.0
"""Seconds that both requests have together: a model on this machine may have to be loaded."""
_LONGEST: Final = 4_096
"""Tokens of a reply, thinking included."""
_SYSTEM: Final = "You are being tried. Call the tool that you are told to call, then answer in one short sentence."
_LINE: Final = "Call the tool `add_numbers` with a = 17 and b = 25. When you have its result, tell it."
_SUM: Final = "42"
_TOOL: Final = {
    "name": "add_numbers",
    "description": "Add two whole numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}
_AS_TEXT: Final = 'If it has no tool use, set tools = "text" in [models."{name}"].'


class _Sum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    a: int
    b: int


class _TriedRequest(NamedTuple):
    """One request, in seconds from its beginning."""

    reply: Reply
    first: float
    """Until something was shown; infinite where nothing was."""
    whole: float
    retries: Sequence[Retrying]


def try_model(settings: Settings, name: str) -> list[CheckResult]:
    """Ask a model for a turn with a tool call, and say how it went."""
    try:
        model = opened_model(name, settings)
    except ConfigError as error:
        return [CheckResult(f"model {name}", "missing", str(error), "`strongroom models` lists what can be used.")]
    return trio.run(_tried, settings, model)


async def _tried(settings: Settings, model: Model) -> list[CheckResult]:
    facts = model_facts(model.name, settings)
    usual = request_options(facts, {})
    options = msgspec.structs.replace(usual, max_tokens=min(usual.max_tokens, _LONGEST))
    messages: list[Message] = [{"role": "user", "content": [{"type": "text", "text": _LINE}]}]
    tried: list[_TriedRequest] = []
    problem = ""
    try:
        with trio.fail_after(_TIME_S):
            await model.warm()
            await learn_limits(model, settings)
            tried.append(await _request(model, messages, 0, options))
            if calls := tried[0].reply.calls:
                results = [{"type": "tool_result", "tool_use_id": call.id, "content": _SUM} for call in calls]
                messages += [
                    {"role": "assistant", "content": tried[0].reply.content},
                    {"role": "user", "content": results},
                ]
                tried.append(await _request(model, messages, 1, options))
    except ModelError as error:
        problem = f"{error.kind}: {error}"
    except trio.TooSlowError:
        problem = f"timeout: it has not answered within {_TIME_S:.0f} s"
    finally:
        with trio.CancelScope(shield=True):
            await model.aclose()
    learned = model.learned if isinstance(model, LearningModel) else NOTHING_LEARNED
    return [*_answered(model.name, tried, problem), *_told(facts, tried, learned)]


async def _request(model: Model, messages: Sequence[Message], step: int, options: ModelOptions) -> _TriedRequest:
    began, first, retries = trio.current_time(), math.inf, list[Retrying]()

    def show(progress: Progress) -> None:
        nonlocal first
        if isinstance(progress, Retrying):
            retries.append(progress)
        else:
            first = min(first, trio.current_time() - began)

    reply = await model.reply(ModelRequest(_SYSTEM, [_TOOL], list(messages), step, options), show)
    return _TriedRequest(reply, first, trio.current_time() - began, retries)


def _answered(name: str, tried: Sequence[_TriedRequest], problem: str) -> Iterator[CheckResult]:
    """Yield whether it answered at all, and whether it called the tool as it should."""
    if problem:
        yield CheckResult(f"model {name}", "missing", problem, "`strongroom models` shows what is known of it.")
    else:
        said = " ".join(tried[-1].reply.text.split())
        yield CheckResult(f"model {name}", "ok", f"answered: {said[:200] or 'nothing'}")
    if not tried:
        return
    verdict, detail = _called(tried[0].reply)
    yield CheckResult("tool call", verdict, detail, "" if verdict == "ok" else _AS_TEXT.format(name=name))
    if len(tried) > 1 and tried[-1].reply.calls:
        yield CheckResult("tool result", "degraded", "it called the tool again instead of telling its result")


def _called(reply: Reply) -> tuple[CheckVerdict, str]:
    if not reply.calls:
        return "degraded", "it answered without calling the tool"
    names = ", ".join(dict.fromkeys(call.name[:40] for call in reply.calls))
    if len(reply.calls) > 1 or names != _TOOL["name"]:
        return "degraded", f"it made {len(reply.calls)} calls, of {names}, where one of {_TOOL['name']} was asked for"
    try:
        given = msgspec.json.decode(reply.calls[0].arguments, type=_Sum)
    except (msgspec.DecodeError, UnicodeError) as error:
        return "degraded", f"its arguments are not what the schema asks for ({error}): {reply.calls[0].arguments[:100]}"
    well = (given.a, given.b) == (17, 25)
    return ("ok", "one, well-formed") if well else ("degraded", f"well-formed, but with a = {given.a}, b = {given.b}")


def _told(facts: ModelFacts, tried: Sequence[_TriedRequest], learned: ServerLimits) -> Iterator[CheckResult]:
    """Yield what was measured and counted, and what its server holds."""
    if tried:
        yield CheckResult("time", "ok", "; ".join(_times(number, each) for number, each in enumerate(tried, 1)))
        retries = [again.kind for each in tried for again in each.retries]
        if retries:
            yield CheckResult("retries", "degraded", f"asked again {len(retries)} times: {', '.join(retries)}")
        yield _tokens(facts, [each.reply.usage for each in tried])
    if len(tried) > 1:
        cached = tried[1].reply.usage.get("cache_read_input_tokens", 0)
        short = "" if cached else ": providers keep no prompt as short as this one"
        yield CheckResult("cache", "ok", f"{cached} tokens of the second request came from it{short}")
    yield _context(facts, learned)


def _times(number: int, tried: _TriedRequest) -> str:
    first = f"{tried.first:.2f} s to the first token, " if tried.first < math.inf else ""
    return f"request {number}: {first}{tried.whole:.2f} s in all"


def _tokens(facts: ModelFacts, usages: Sequence[Usage]) -> CheckResult:
    counted = [usage for usage in usages if any(usage.get(name) for name in COUNTED)]
    if len(counted) < len(usages):
        detail = "its server counts none, or not for every request"
        return CheckResult("tokens", "degraded", detail, "Budgets of tokens and money cannot be kept with it.")
    told = ", ".join(f"{sum(usage.get(name, 0) for usage in usages)} {words}" for name, words in _COUNTS.items())
    spent = sum(cost(facts.prices, usage) for usage in usages) if facts.prices is not None else None
    money = "" if facts.prices is None or spent is None else f"; {spent:.6f} {facts.prices.currency}"
    return CheckResult("tokens", "ok", f"{told}{money}")


def _context(facts: ModelFacts, learned: ServerLimits) -> CheckResult:
    source, window = facts.sources["window"], learned.window or facts.window
    if not (learned.window and learned.told):
        known = facts.known and window == facts.window
        detail = f"{window:,} tokens ({source if known else ASSUMED}); its server does not tell what it holds"
        return CheckResult("context", "ok" if known else "degraded", detail, "" if known else _UNKNOWN)
    if learned.window < facts.window and facts.known:
        detail = f"its server holds {learned.window:,} tokens, and not {facts.window:,} ({source})"
        return CheckResult("context", "degraded", detail, "Let the server hold more, where it can; sessions go by it.")
    return CheckResult("context", "ok", f"its server holds {learned.window:,} tokens")


_COUNTS: Final[dict[str, Any]] = {
    "input_tokens": "in",
    "output_tokens": "out",
    "cache_read_input_tokens": "from the cache",
    "cache_creation_input_tokens": "into the cache",
}
_UNKNOWN: Final = "Set `window` in [models.NAME] to what it holds."
