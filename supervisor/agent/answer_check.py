"""Answers held against their schema, in a process of its own.

Rule: a pattern may run for hours on a few letters of a model's, and Python neither stops it nor lets anything else run
meanwhile. So in the daemon nothing is held against a schema but what msgspec decodes (`answer_types.py`), and what
takes longer than a few seconds of a processor is no valid answer.
"""

import json
import subprocess
import sys
from typing import Any, Final

from supervisor.agent.answer_schema import InvalidAnswer, answer_in, problem_in_schema
from supervisor.agent.answer_types import typed_answer
from supervisor.system.isolated import environment_without_code, isolated, libraries

_SECONDS: Final = 2
"""Of a processor."""
_WAIT: Final = 20 * _SECONDS
"""Seconds until it is given up, where processors are scarce."""
_MEMORY: Final = 2**31
"""Bytes."""
_TOO_LONG: Final = f"it takes more than {_SECONDS} seconds to hold against the schema"
_PROGRAM: Final = "from supervisor.agent.answer_check import main; main()"


async def schema_problem(schema: object) -> str:
    """Return why something cannot be the schema of an answer, as a clause; "" where it can."""
    return (await _answer_of({"schema": schema}))["problem"]


async def checked_answer(schema: dict[str, Any], text: str) -> str:
    """Return the JSON document that an answer consists of, as `answer_in` does.

    Raises:
        InvalidAnswer: it is none, or not valid by the schema, or that cannot be found out.
    """
    if (document := typed_answer(schema, text)) is not None:
        return document
    found = await _answer_of({"schema": schema, "text": text})
    if "problem" in found:
        raise InvalidAnswer(found["problem"])
    return found["document"]


async def _answer_of(question: dict[str, Any]) -> dict[str, str]:
    """Return what the process answers. Who is cancelled leaves it to its own end."""
    import trio  # which is half of what the process would import

    return await trio.to_thread.run_sync(_elsewhere, json.dumps(question).encode(), abandon_on_cancel=True)


def _elsewhere(question: bytes) -> dict[str, str]:
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and code
            isolated(_PROGRAM, "strongroom-answer", libraries()),
            input=question,
            capture_output=True,
            timeout=_WAIT,
            env=environment_without_code(),
            check=True,
        )
        found: dict[str, str] = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError):  # by its limits, the only way in which it ends otherwise
        return {"problem": _TOO_LONG}
    except OSError as error:
        return {"problem": f"it cannot be held against the schema ({error.strerror})"}
    return found


def main() -> None:
    """Answer what stdin asks, in a process of its own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    json.dump(_found(**json.load(sys.stdin)), sys.stdout)


def _found(schema: Any, text: str | None = None) -> dict[str, str]:
    """Return the document that a text is by a schema, or what is wrong with it; without a text, with the schema."""
    if text is None:
        return {"problem": problem_in_schema(schema, tried=True)}
    try:
        return {"document": answer_in(schema, text)}
    except InvalidAnswer as error:
        return {"problem": str(error)}
