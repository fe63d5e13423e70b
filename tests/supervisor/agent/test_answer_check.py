"""Answers are held against schemas elsewhere: what never ends there ends, and keeps nobody from anything."""

import os
import signal
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from supervisor.agent.answer_check import checked_answer, schema_problem
from supervisor.agent.answer_schema import InvalidAnswer, problem_in_schema

ENDLESS: Final[dict[str, Any]] = {"type": "string", "pattern": "^(a+)+$"}
PLAIN: Final[dict[str, Any]] = {"not": {"type": "string"}}
DOUBLING: Final[dict[str, Any]] = {
    "$defs": {f"{n}": {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)} | {"40": {}},
    "$ref": "#/$defs/0",
}


async def test_it_says_what_is_valid_and_what_is_not() -> None:
    assert await checked_answer(ENDLESS, '```json\n"aa"\n```') == '"aa"'
    with pytest.raises(InvalidAnswer, match="'b' does not match"):
        await checked_answer(ENDLESS, '"b"')
    assert await schema_problem(ENDLESS) == ""
    assert "'text' is not valid" in await schema_problem({"type": "text"})


async def test_a_pattern_without_end_is_given_up_and_others_go_on_meanwhile() -> None:
    async def hold() -> None:
        with pytest.raises(InvalidAnswer, match="takes more than"):
            await checked_answer(ENDLESS, f'"{"a" * 40}!"')
        scope.cancel()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            nursery.start_soon(hold)
            assert await checked_answer(PLAIN, "1") == "1"
            await trio.sleep_forever()


async def test_a_schema_without_end_cannot_be_used() -> None:
    assert "takes more than" in await schema_problem(DOUBLING)
    assert problem_in_schema(DOUBLING) == ""  # by a client, which tries nothing with it


async def test_who_is_cancelled_does_not_wait_for_it() -> None:
    with trio.fail_after(60), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checked_answer, ENDLESS, f'"{"a" * 40}!"')
            await checked_answer(PLAIN, "1")  # the other one has begun by then
            scope.cancel()
    assert scope.cancelled_caught
    for each in Path("/proc/self/task").glob("*/children"):
        for pid in each.read_text().split():
            if b"strongroom-answer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)  # its end is its limit's, two seconds of a processor later
