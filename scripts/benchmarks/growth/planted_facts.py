"""Facts planted in a long conversation, and the words with which a model asks for them again.

Rule: what is asked for is a value that stands in the journal once, and in no question. Each name has a fact of every
kind, and stands elsewhere as well, so that neither a name nor a kind of fact finds anything alone. What lies around
them is text of this tree.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from supervisor.journal.facts import CallEnded, CallStarted, Fact, Replied, SessionOpened, TurnEnded, TurnStarted
from workers.wire.messages import Context

_TOKEN: Final = 4
"""Characters of one."""
_PLACES: Final = ("line", "result", "answer")
_RESULT: Final = 20_000
"""Characters that a call has read."""
_TREE: Final = Path(__file__).parents[3]
_SYLLABLES: Final = ("ka", "lo", "mir", "ten", "vas", "ru", "pel", "dor", "shi", "ban", "qui", "zet", "ol", "fra", "ny")
_KINDS: Final = (
    (
        "The staging database of {name} listens on port {value}.",
        "which port does {name}'s staging database use?",
        "{name} database port",
    ),
    (
        "We agreed that the {name} report goes to {value} every quarter.",
        "who gets the quarterly report about {name}",
        "report {name} agreed",
    ),
    ("export {upper}_API_VERSION={value}", "what is the API version configured for {name}", "{upper}_API_VERSION"),
    ("def {name}Handler(retries=3, timeout={value}):", "the timeout of the {name} handler function", "{name}Handler"),
    (
        "error TS2339: Property '{value}' does not exist on type '{title}Props'.",
        "TypeScript compile error: missing property on {title}Props",
        "{title}Props TS2339",
    ),
    (
        "{title} will not drink coffee; buy {value} tea instead.",
        "what does {title} drink instead of coffee",
        "{title} tea",
    ),
    (
        "* {value} Fix the {name} parser for empty input",
        "commit that fixed parsing of empty inputs in {name}",
        "{name} parser",
    ),
    (
        "src/{name}/{value}.py:17: TODO: remove the shim when the old clients are gone",
        "file in src/{name} with the TODO about removing the shim",
        "src/{name} shim",
    ),
    (
        "Die Rechnung an {title} beläuft sich auf {value} Euro, zahlbar in 14 Tagen.",
        "Wie hoch ist die Rechnung von {title}?",
        "Rechnung {title} Euro",
    ),
    (
        "{name}: latency p99 = {value} ms after the index was added",
        "p99 latencies measured for {name} after adding the index",
        "{name} p99 latency",
    ),
)
"""What is planted, a question for it, and the words that are tried where that finds nothing."""
_ELSEWHERE: Final = ("Look at {name} again, please.", "{title} is on holiday.", "{name} builds without a warning.")


class PlantedFact(NamedTuple):
    """One fact."""

    text: str
    value: str
    queries: tuple[str, str]
    where: str
    """One of `_PLACES`."""


def planted_facts(count: int, seed: int = 1) -> list[PlantedFact]:
    """Return so many facts, in the order in which they are planted."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    names = dict.fromkeys("".join(rng.choices(_SYLLABLES, k=3)) for _ in range(count))
    found = []
    for name in [*names][: -(-count // len(_KINDS))]:
        known = {"name": name, "title": name.title(), "upper": name.upper()}
        for text, *queries in _KINDS:
            value = f"{rng.choice('bcdfghjk')}{rng.randrange(16**7):07x}"
            asked = tuple(each.format(**known) for each in queries)
            where = rng.choice(_PLACES)
            found.append(PlantedFact(text.format(value=value, **known), value, (asked[0], asked[1]), where))
    rng.shuffle(found)
    return found[:count]


def conversation(planted: list[PlantedFact], tokens: int, seed: int = 2) -> Iterator[Fact]:
    """Yield the facts of a session of about so many tokens, with what is planted all over it."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    yield SessionOpened("code", "offline", Context(str(_TREE)), ("read_file",), "console", "0", cwd=str(_TREE))
    around = "\n".join(path.read_text("utf-8") for path in sorted(_TREE.glob("*/**/*.py")) if ".venv" not in path.parts)
    turns = max(1, tokens * _TOKEN // _RESULT)
    names = sorted({each.text.split()[0].strip(":*").lower() for each in planted} | {"it"})
    for turn in range(turns):
        here = planted[turn * len(planted) // turns : (turn + 1) * len(planted) // turns]
        texts = {where: [each.text for each in here if each.where == where] for where in _PLACES}
        name = rng.choice(names)
        line = [rng.choice(_ELSEWHERE).format(name=name, title=name.title()), *texts["line"]]
        at = rng.randrange(max(1, len(around) - _RESULT))
        read = around[at : at + _RESULT].splitlines()
        for each in texts["result"]:
            read.insert(rng.randrange(len(read) + 1), each)
        call = f"toolu_{rng.randrange(16**12):012x}"
        use: dict[str, Any] = {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": f"{turn}.py"}}
        answer = [f"I have looked at {turn}.py, and it is as you say.", *texts["answer"]]
        yield TurnStarted(turn + 1, "\n".join(line))
        yield Replied(turn + 1, 0, [{"type": "text", "text": "I look."}, use], "tool_use", {"input_tokens": 9})
        yield CallStarted(turn + 1, call, "read_file", f'{{"path": "{turn}.py"}}', False, "allow", "reads")
        yield CallEnded(turn + 1, call, "read_file", True, "\n".join(read))
        yield Replied(turn + 1, 1, [{"type": "text", "text": "\n".join(answer)}], "end_turn", {"input_tokens": 9})
        yield TurnEnded(turn + 1, "ok", "")
