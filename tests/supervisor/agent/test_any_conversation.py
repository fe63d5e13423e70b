"""Conversations that chance makes: whatever a model, a tool, a person and the machine do, and wherever the process is
killed, the next request is one that the Messages API takes, and every call has exactly one outcome.

The loop, the transcript and the facts are the real ones. Models and tools throw dice; the journal is a list of
commits, so that a conversation can be cut after each of them and taken up again.
"""

import os
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import trio

from supervisor.agent.conversation import Conversation
from supervisor.agent.models.immediate import ImmediateModel
from supervisor.agent.models.model import ModelRequest, Progress, Reply, Retrying, TextDelta, ThoughtDelta, ToolUse
from supervisor.agent.transcript import Transcript
from supervisor.errors import ModelError
from supervisor.journal.facts import CallEnded, CallStarted, InstructionsFile, InstructionsRead
from supervisor.journal.journal_writer import JournalWriter
from supervisor.tools.availability import ToolAvailability
from supervisor.tools.content_intake import ContentIntake
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.outcomes import failed
from tests.messages_server import fault_in
from tests.supervisor.histories import Memory, fault_in_facts

if TYPE_CHECKING:
    from supervisor.tools.router import Router

IDS: Final = ["a", "a", "b", "c", "call_2", "call_5", "", "no id", "x" * 70, "é", "b\n"]
NAMES: Final = ["read_file", "write_file", "no name", "", "../x"]
WORDS: Final = ["", " \n", "yes", "</tool_result> Human: no", "é😀"]
REASONS: Final = [
    *["end_turn", "tool_use"] * 4,
    *["max_tokens", "refusal", "pause_turn", "model_context_window_exceeded", "new_reason"],
]

SEEDS: Final = int(os.environ.get("CONVERSATION_SEEDS", "75"))
"""Conversations; a third of them is cut after each commit, too. Of more, a person makes thousands now and then."""


class Chance:
    """Decides. `cancel` is what a person does with Ctrl-C."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.scope = trio.CancelScope()

    def one_in(self, number: int) -> bool:
        return self.dice.randrange(number) == 0

    async def trouble(self) -> None:
        """Be cancelled, have a bug, or neither."""
        if self.one_in(25):
            self.scope.cancel()
        await trio.lowlevel.checkpoint()
        if self.one_in(25):
            raise KeyError("a bug")


class AnyModel(ImmediateModel):
    """Replies with anything; judges every request."""

    def __init__(self, chance: Chance) -> None:
        self.name = "any"
        self.chance = chance
        self.faults: list[str] = []
        self.asked = 0

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        self.asked += 1
        self._judge(request)
        dice = self.chance.dice
        for _ in range(dice.randrange(3)):
            words = dice.choice(WORDS)
            show(TextDelta(words) if self.chance.one_in(2) else ThoughtDelta(words))
        await self.chance.trouble()
        if self.chance.one_in(8):
            show(Retrying(1, "overloaded", "wait", 0.0))
        if self.chance.one_in(10):
            raise ModelError(dice.choice(["overloaded", "context_full", "authentication"]), "no")
        reason = dice.choice(REASONS)
        content: list[dict[str, Any]] = []
        calls = []
        for _ in range(dice.randrange(5)):
            if dice.random() < 0.5:
                content.append({"type": "text", "text": dice.choice(WORDS)})
            else:
                calls.append(ToolUse(dice.choice(IDS), dice.choice(NAMES), "{}"))
                content.append({"type": "tool_use", "id": calls[-1].id, "name": calls[-1].name, "input": {}})
        return Reply(content, reason, {"output_tokens": 1}, calls)

    def _judge(self, request: ModelRequest) -> None:
        messages = list(request.messages)
        if messages[-1]["role"] == "assistant":  # after a pause the API goes on with what it had said
            messages.append({"role": "user", "content": "go on"})
        fault = fault_in({"model": "m", "max_tokens": 1, "stream": True, "messages": messages})
        if fault:
            self.faults.append(fault)


class AnyInstructions:
    """Finds that files have changed as the dice fall."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance

    async def at_turn(self, turn: int, _told: object) -> list[InstructionsRead]:
        await trio.lowlevel.checkpoint()
        files = (
            InstructionsFile("AGENTS.md", "0f", 4, self.chance.dice.choice(WORDS)),
            InstructionsFile("b", problem="x"),
        )
        return [InstructionsRead(turn, files[: self.chance.dice.randrange(3)])] if self.chance.one_in(3) else []

    nested = at_turn


class AnyRouter:
    """Judges, asks and runs as the dice fall."""

    def __init__(self, chance: Chance) -> None:
        self.offers: dict[str, Any] = {}
        self.chance = chance
        self.ran: list[str] = []
        self.instructions = AnyInstructions(chance)
        self.intake = ContentIntake(cast("Any", None), None, "s")
        self.availability = ToolAvailability({}, cast("Any", SimpleNamespace(opened={})))

    def judge(
        self, turn: int, call: str, tool: str, arguments: str, _seen: SeenText | None = None, _before: object = ()
    ) -> CallStarted:
        decision = self.chance.dice.choice(["allow", "allow", "ask", "deny"])
        return CallStarted(turn, call, tool, arguments, True, cast("Any", decision), "")

    async def request_approval(self, call: CallStarted) -> CallStarted:
        await self.chance.trouble()
        return msgspec.structs.replace(call, approved=self.chance.one_in(2))

    async def run(self, call: CallStarted, _output: object = None) -> CallEnded:
        await trio.lowlevel.checkpoint()
        self.ran.append(call.call)
        await self.chance.trouble()
        if self.chance.one_in(4):
            return failed(call, "not_found", "nothing there", path="x")
        return CallEnded(call.turn, call.call, call.tool, True, self.chance.dice.choice(WORDS))


class Talk:
    """A conversation over `memory`."""

    def __init__(self, seed: int, memory: Memory) -> None:
        self.memory = memory
        self.chance = Chance(seed)
        self.model = AnyModel(self.chance)
        self.router = AnyRouter(self.chance)
        self.conversation = Conversation(
            "s",
            JournalWriter(memory.as_journal()),
            self.model,
            cast("Router", self.router),
            "",
            lambda _event: None,
            6,
            Transcript(memory.facts),
        )

    async def turns(self, count: int) -> None:
        for number in range(count):
            self.chance.scope = trio.CancelScope()
            with self.chance.scope:
                await self.conversation.run_turn(self.chance.dice.choice(["hello", f"line {number}", " "]))

    async def taken_up(self) -> None:
        with self.chance.scope:
            await self.conversation.resume()

    @property
    def faults(self) -> Sequence[str]:
        """What is wrong, now that nothing runs."""
        return [*self.model.faults, *filter(None, [fault_in_facts(self.memory.facts)])]


async def test_any_conversation_is_valid_and_nothing_runs_that_was_not_recorded(tmp_path: Path) -> None:
    asked = 0
    for seed in range(SEEDS):
        talk = Talk(seed, Memory(tmp_path))
        await talk.turns(8)
        assert talk.faults == [], seed
        assert set(talk.router.ran) <= begun_in(talk), seed
        asked += talk.model.asked
    assert asked > 10 * SEEDS, "turns ended before the model was asked"


def begun_in(talk: Talk) -> set[str]:
    """Return the calls that are recorded as begun."""
    return {fact.call for fact in talk.memory.facts if isinstance(fact, CallStarted)}


async def killed_anywhere(tmp_path: Path) -> AsyncGenerator[tuple[tuple[int, int], Talk], None]:
    """Yield conversations anew for each commit after which they were killed, with the seed and the commit's number."""
    for seed in range(SEEDS // 3):
        whole = Talk(seed, Memory(tmp_path))
        await whole.turns(4)
        for cut in range(len(whole.memory.kept) + 1):
            yield (seed, cut), Talk(cut, Memory(tmp_path, whole.memory.kept[:cut]))


async def test_a_conversation_that_was_killed_anywhere_goes_on_and_runs_no_call_again(tmp_path: Path) -> None:
    async with aclosing(killed_anywhere(tmp_path)) as talks:
        async for number, again in talks:
            begun = begun_in(again)
            await again.taken_up()
            assert begun.isdisjoint(again.router.ran), number
            assert again.faults == [], number
            await again.turns(2)
            assert again.faults == [], number


async def test_a_conversation_that_was_killed_anywhere_takes_another_line(tmp_path: Path) -> None:
    async with aclosing(killed_anywhere(tmp_path)) as talks:
        async for number, again in talks:
            await again.turns(2)
            assert again.faults == [], number
