"""Options of a model's replies: what can be chosen, what was, and what a request asks for. Pure.

Rule: the session's choice wins over `[models.NAME]`, and that over the catalogue. What a model does not have is not
offered, and a choice that another model had stands by until one has it again.
"""

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from supervisor.agent.models.model import ModelOptions
from supervisor.agent.models.model_facts import ModelFacts
from supervisor.config.model_keys import Effort
from supervisor.errors import ConfigError
from supervisor.journal.facts import OptionName

DEFAULT: Final = "default"
"""Stands for no choice."""
OPTIONS: Final[Mapping[str, str]] = {"effort": "Effort", "max_tokens": "Longest reply", "temperature": "Temperature"}
"""The options by name, as people read them."""
SWITCH: Final = "thinking"
"""The effort as a yes or a no, where a model can do without thinking."""
_USUAL: Final = 8_192
_USUAL_THINKING: Final = 32_000
"""Tokens of a reply that are asked for where nobody chose: room for an answer, and for thinking before it."""
_LENGTHS: Final = (2_048, 4_096, 8_192, 16_384, 32_000, 64_000, 128_000)
_TEMPERATURES: Final = ("0", "0.3", "0.7", "1")
_HOTTEST: Final = 2.0


def suggested(facts: ModelFacts) -> dict[OptionName, Sequence[str]]:
    """Return what can be chosen of a model's replies, with values to choose from; of numbers any will do."""
    if not facts.steered:
        return {}
    offered: dict[OptionName, Sequence[str]] = {}
    if facts.efforts:
        offered["effort"] = facts.efforts
    offered["max_tokens"] = [str(length) for length in _LENGTHS if length <= facts.max_tokens]
    if facts.takes_temperature:
        offered["temperature"] = _TEMPERATURES
    return offered


def checked_choice(facts: ModelFacts, option: str, value: str) -> tuple[OptionName, str]:
    """Return an option and the value to keep for it, which is empty for the default.

    Raises:
        ConfigError: the model has no such option, or it takes no such value.
    """
    offered = suggested(facts)
    name = next((each for each in offered if each == option), None)
    if name is None:
        raise ConfigError(f"The model {facts.name!r} has no option {option[:80]!r}.")
    if value == DEFAULT:
        return name, ""
    problem = ""
    if name == "effort" and value not in facts.efforts:
        problem = f"one of {', '.join(facts.efforts)}"
    elif name == "max_tokens" and not (_is_number(value) and 0 < int(value) <= facts.max_tokens):
        problem = f"a number of tokens from 1 to {facts.max_tokens}"
    elif name == "temperature" and not 0 <= _as_temperature(value) <= _HOTTEST:
        problem = "a number from 0 to 2"
    if problem:
        raise ConfigError(f"The option {name} is {problem}, or {DEFAULT}, not {value[:80]!r}.")
    return name, value


def request_options(facts: ModelFacts, chosen: Mapping[str, str]) -> ModelOptions:
    """Return what a request asks for, of what was `chosen` in the session."""
    efforts: Sequence[Effort] = facts.efforts or get_args(Effort)
    usual: Effort = ""
    wanted = (chosen.get("effort", ""), facts.effort)
    effort = next((each for want in wanted if want for each in efforts if each == want), usual)
    usual_length = _USUAL_THINKING if _thinks(facts, effort) else _USUAL
    longest = int(chosen.get("max_tokens", facts.reply_tokens or usual_length))
    temperature = chosen.get("temperature")
    return ModelOptions(
        max_tokens=min(longest, facts.max_tokens),
        effort=effort,
        temperature=facts.temperature if temperature is None else float(temperature),
    )


def thinks(facts: ModelFacts, chosen: Mapping[str, str]) -> bool:
    """Say whether a model thinks before it answers, by what was `chosen` in the session."""
    return _thinks(facts, request_options(facts, chosen).effort)


def _thinks(facts: ModelFacts, effort: Effort) -> bool:
    return effort != "none" if effort else facts.thinks


def effort_switched(facts: ModelFacts, chosen: Mapping[str, str], on: bool) -> str:
    """Return the effort to choose so that a model thinks, or does not: as it is, its default, or the middle one."""
    if on == thinks(facts, chosen):
        return chosen.get("effort", DEFAULT)
    if not on:
        return "none"
    efforts = [each for each in facts.efforts if each != "none"]
    return DEFAULT if thinks(facts, {}) else efforts[len(efforts) // 2]


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) <= len(str(10**9))


def _as_temperature(value: str) -> float:
    try:
        return float(value)  # of "nan" every comparison is false
    except ValueError:
        return -1.0
