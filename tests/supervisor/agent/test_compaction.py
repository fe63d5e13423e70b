"""Conversations that outgrow their model's window go on, with all that the person has said."""

import random
from pathlib import Path
from typing import Final

import msgspec
import pytest
import trio

from supervisor.agent.amount import tokens_in
from supervisor.agent.ledger import Ledger
from supervisor.agent.transcript import Transcript
from supervisor.config.config_keys import BudgetConfig, BudgetsConfig
from supervisor.journal.facts import (
    CallEnded,
    CallStarted,
    Compacted,
    Fact,
    InstructionsFile,
    InstructionsRead,
    ModeChanged,
    Replied,
    Source,
    ToolsChanged,
    TurnEnded,
    TurnStarted,
    decode,
    encode,
)
from tests.each_row import each_row
from tests.supervisor.agent.long_talk import LIES, SUMMARY, LongTalk, words
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import Memory, fault_in_facts

FAILURES: Final = {
    "fails": "no_reply",
    "empty": "empty",
    "nonsense": "nonsense",
    "repeats": "nonsense",
    "calls": "called_tools",
    "cut": "cut",
    "long": "too_long",
    "bug": "no_reply",
}


async def grown(talk: LongTalk, turns: int = 12) -> None:
    with trio.fail_after(HANG_GUARD):
        for number in range(turns):
            assert await talk.turn(f"line {number}: keep {words(talk.dice, 3)}", calls=2) == ""


async def test_a_conversation_that_comes_near_the_window_is_compacted_and_goes_on(tmp_path: Path) -> None:
    talk = LongTalk(1, Memory(tmp_path))
    await grown(talk)
    assert len(talk.compactions) >= 2
    assert all(fact.because == "near" and fact.after < fact.before for fact in talk.compactions)
    assert (talk.model.refused, talk.model.faults, talk.lost_lines()) == (0, [], [])
    assert talk.is_as_read_again()


async def test_it_is_compacted_within_a_turn(tmp_path: Path) -> None:
    talk = LongTalk(1, Memory(tmp_path))
    assert await talk.turn("read all of it", calls=15) == ""
    kinds = [type(fact) for fact in talk.memory.facts]
    assert Compacted in kinds[: kinds.index(TurnEnded)]
    assert (talk.model.refused, talk.model.faults, talk.lost_lines()) == (0, [], [])


@pytest.mark.parametrize("lie", LIES)
async def test_whatever_a_model_says_instead_of_a_summary_the_rest_holds(lie: str, tmp_path: Path) -> None:
    talk = LongTalk(2, Memory(tmp_path))
    talk.model.lies = [lie]
    await grown(talk, 6)
    [first, *_] = talk.compactions
    assert first.failure == FAILURES.get(lie, "")
    assert first.model == "counting"
    told = "\n".join(talk.texts())
    assert (SUMMARY in told) == (lie not in FAILURES)
    assert told.count("</summary>") == (lie not in FAILURES)
    assert talk.lost_lines() == []


@pytest.mark.parametrize("known", [0, 10**6])
async def test_a_server_that_finds_it_too_long_is_asked_again_with_less(known: int, tmp_path: Path) -> None:
    talk = LongTalk(3, Memory(tmp_path), known=known)
    await grown(talk)
    assert talk.model.refused >= 1
    assert {fact.because for fact in talk.compactions} == {"full"}
    assert (talk.model.faults, talk.lost_lines()) == ([], [])
    assert talk.is_as_read_again()


async def test_a_result_that_is_larger_than_the_window_is_cut(tmp_path: Path) -> None:
    talk = LongTalk(4, Memory(tmp_path))
    assert await talk.turn("read it", calls=1, size=200_000) == ""
    [block] = [each for each in talk.model.sent[-1].messages[-1]["content"] if each["type"] == "tool_result"]
    assert f"recall call {block['tool_use_id']}" in block["content"]
    assert talk.model.faults == []


async def test_lines_that_do_not_fit_give_way_the_oldest_first(tmp_path: Path) -> None:
    talk = LongTalk(5, Memory(tmp_path))
    for number in range(12):
        assert await talk.turn(f"{number}: {words(talk.dice, 400)}") == ""
    lost = talk.lost_lines()
    assert lost == talk.lines[: len(lost)]
    assert 0 < len(lost) < 12
    assert any("the beginning of a line of the person's" in text and "recall" in text for text in talk.texts())


async def test_only_a_line_that_is_larger_than_the_window_ends_a_turn_and_not_the_session(tmp_path: Path) -> None:
    talk = LongTalk(6, Memory(tmp_path))
    await grown(talk, 2)
    assert await talk.turn(words(talk.dice, 10_000)) == "context_full"
    assert await talk.turn("go on") == ""
    assert talk.model.faults == []


async def test_a_person_can_have_it_compacted_and_say_what_is_kept_in_mind(tmp_path: Path) -> None:
    talk = LongTalk(7, Memory(tmp_path), window=100_000)
    talk.model.lies = ["good"]
    await grown(talk, 5)
    fact = await talk.conversation.compact("console", "the tests")
    assert fact is not None
    assert (fact.because, fact.by, fact.remark, fact.summary) == ("asked", "console", "the tests", SUMMARY)
    assert fact.after < fact.before / 2
    assert await talk.turn("go on") == ""
    assert talk.lost_lines() == []
    assert talk.is_as_read_again()


async def test_what_a_person_asks_for_while_a_turn_runs_is_done_before_the_next_request(tmp_path: Path) -> None:
    talk = LongTalk(8, Memory(tmp_path), window=100_000)
    await grown(talk, 5)
    talk.conversation.compact_later("console", "")
    assert await talk.turn("go on", calls=1) == ""
    assert [fact.because for fact in talk.compactions] == ["asked"]


async def test_a_conversation_without_a_word_is_not_compacted(tmp_path: Path) -> None:
    assert await LongTalk(9, Memory(tmp_path)).conversation.compact("console") is None


async def test_requests_begin_alike_between_two_compactions(tmp_path: Path) -> None:
    talk = LongTalk(10, Memory(tmp_path), window=8000)
    await grown(talk, 6)
    count, before = len(talk.compactions), list(talk.model.sent[-1].messages)
    assert await talk.turn("go on") == ""
    assert len(talk.compactions) == count > 0
    assert list(talk.model.sent[-1].messages)[: len(before)] == before


async def test_a_kill_after_any_commit_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    whole = LongTalk(11, Memory(tmp_path))
    await grown(whole, 5)
    for cut in range(len(whole.memory.kept) + 1):
        again = LongTalk(cut, Memory(tmp_path, whole.memory.kept[:cut]))
        assert again.is_as_read_again()
        with trio.fail_after(HANG_GUARD):
            await again.conversation.resume()
            assert await again.turn("go on") == ""
        assert (again.model.faults, fault_in_facts(again.memory.facts)) == ([], None)


async def test_a_cancelled_compaction_leaves_the_session_usable(tmp_path: Path) -> None:
    talk = LongTalk(12, Memory(tmp_path))
    asked = trio.Event()

    async def hangs(*_given: object) -> Compacted:
        asked.set()
        await trio.sleep_forever()
        raise AssertionError

    talk.conversation._requester.compactor.summarize = hangs
    with trio.fail_after(HANG_GUARD):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk.turn, "read all of it", 15)
            await asked.wait()
            nursery.cancel_scope.cancel()
    assert talk.compactions == []
    again = LongTalk(12, talk.memory)
    assert await again.turn("go on") == ""
    assert fault_in_facts(again.memory.facts) is None


async def test_what_summaries_took_counts_in_the_budget_and_where_none_is_left_there_is_no_summary(
    tmp_path: Path,
) -> None:
    ledger = Ledger(config=BudgetsConfig(session=BudgetConfig(tokens=10**6)))
    talk = LongTalk(13, Memory(tmp_path), ledger=ledger)
    talk.model.lies = ["good", "cut", "fails"]
    await grown(talk, 6)
    billed = sum(tokens_in(fact.usage) for fact in talk.memory.facts if isinstance(fact, Replied | Compacted))
    spent = talk.conversation.transcript.spending.session.tokens
    assert sum(tokens_in(fact.usage) for fact in talk.compactions) > 0
    assert (spent, ledger.today().used.tokens) == (billed, billed)
    ledger.config = BudgetsConfig(session=BudgetConfig(tokens=spent + 2000))
    fact = await talk.conversation.compact("console")
    assert fact is not None
    assert (fact.summary, fact.failure, fact.usage) == ("", "budget", {})


# --- the fold -------------------------------------------------------------------------------------------------------


def spoken(turn: int, text: str, *results: CallEnded, sources: tuple[Source, ...] = ()) -> list[Fact]:
    calls = [{"type": "tool_use", "id": each.call, "name": each.tool, "input": {}} for each in results]
    facts: list[Fact] = [TurnStarted(turn, text, sources)]
    if calls:
        facts.append(Replied(turn, turn * 2, calls, "tool_use", {}))
    facts += [CallStarted(turn, each.call, each.tool, '{"path": "n.md"}', False, "allow", "") for each in results]
    done = [{"type": "text", "text": "done"}]
    return [*facts, *results, Replied(turn, turn * 2 + 1, done, "end_turn", {}), TurnEnded(turn, "ok", "done")]


def shown(*facts: Fact, size: int = 10_000, result: int = 10_000) -> list[str]:
    """Return the blocks of the head after all but the last answer was left out."""
    transcript = Transcript([*facts, Compacted(2, 1000, size, result, "near")])
    return [block["text"] for block in transcript.messages[0]["content"]]


def test_a_result_becomes_a_line_with_its_call_its_target_its_outcome_and_its_size() -> None:
    ended = CallEnded(1, "toolu_7", "read_file", False, "there is none", kind="not_found")
    [line] = [text for text in shown(*spoken(1, "look", ended), *spoken(2, "on")) if "toolu_7" in text]
    assert "turn 1, call toolu_7: read_file n.md: not_found, 13 characters; recall call toolu_7" in line


def test_the_last_plan_stands_whole() -> None:
    plans = [[{"content": "old"}], [{"content": "test", "status": "completed"}, {"content": "write"}]]
    facts: list[Fact] = []
    for turn, entries in enumerate(plans, 1):
        first, reply, started, *rest = spoken(turn, "go", CallEnded(turn, f"p{turn}", "plan", True, "shown"))
        assert isinstance(started, CallStarted)
        arguments = msgspec.json.encode({"entries": entries}).decode()
        facts += [first, reply, msgspec.structs.replace(started, arguments=arguments), *rest]
    [told] = [text for text in shown(*facts) if "Your plan" in text]
    assert "- [completed] test\n- [pending] write" in told
    assert "old" not in told


def test_what_came_with_a_line_is_a_line_about_it() -> None:
    sources = Source("person", "", size=5), Source("attachment", "big.md", size=9000), Source("person", "", size=3)
    told = shown(*spoken(1, f"look {'x' * 9000}end", sources=sources), *spoken(2, "on"))
    assert "look " in told
    assert "end" in told
    assert "big.md, 9000 characters, came with the line" in "".join(told)
    assert "xxx" not in "".join(told)


def test_what_a_person_said_to_a_call_stands_as_they_said_it() -> None:
    first, reply, started, *rest = spoken(1, "go", CallEnded(1, "c", "write_file", False, "no", kind="denied"))
    assert isinstance(started, CallStarted)
    told = shown(first, reply, msgspec.structs.replace(started, remark="never touch\nmigrations/"), *rest)
    assert "never touch\nmigrations/" in told


def test_instructions_the_mode_and_tools_that_are_gone_are_told_again() -> None:
    gone = ToolsChanged(1, "web", ("fetch_url",), "its workers failed")
    read = InstructionsRead(1, (InstructionsFile("AGENTS.md", "0f", 9, "Use tabs."),))
    told = "\n".join(
        shown(ModeChanged("plan"), read, *spoken(1, "go")[:2], gone, *spoken(1, "go")[2:], *spoken(2, "on"))
    )
    assert "mode 'plan'" in told
    assert "Use tabs." in told
    assert "fetch_url" in told


@each_row("step", [10**6, -1, 5])
def test_any_step_leaves_a_conversation_that_is_valid(step: int) -> None:
    ended = CallEnded(1, "a", "read_file", True, "x" * 100)
    facts = [*spoken(1, "one", ended), *spoken(2, "two", msgspec.structs.replace(ended, turn=2, call="b"))]
    for cut in range(len(facts)):
        compacted = [*facts[:cut], Compacted(1, step, 400, 10, "near"), *facts[cut:]]
        assert fault_in_facts([fact for fact in compacted if not isinstance(fact, CallStarted)]) is None


def test_a_reply_that_was_not_taken_is_where_the_rest_can_begin() -> None:
    said = [{"type": "text", "text": "no JSON"}]
    facts = [*spoken(1, "one"), TurnStarted(2, "two"), Replied(2, 9, said, "end_turn", {}, refused="no JSON")]
    first, second, *_ = Transcript([*facts, Compacted(2, 9, 9000, 9000, "near")]).messages
    assert (first["role"], second["role"], second["content"]) == ("user", "assistant", said)
    assert [block["text"] for block in first["content"] if block["text"] in ("one", "two")] == ["one", "two"]


def test_a_line_that_does_not_fit_leaves_the_shorter_ones_before_it() -> None:
    told = shown(*spoken(1, "short"), *spoken(2, "x" * 9000), *spoken(3, "last"), size=4000)
    assert "short" in told
    assert "last" in told
    assert not any("x" * 200 in text for text in told)


def test_nothing_counts_as_measured_that_was_sent_before() -> None:
    facts = [fact for turn in range(1, 4) for fact in spoken(turn, "go")]
    counted = msgspec.structs.replace(Replied(4, 9, [], "end_turn", {}), usage={"input_tokens": 90, "output_tokens": 1})
    transcript = Transcript([*facts, TurnStarted(4, "on"), counted])
    assert transcript.measured is not None
    transcript.apply(Compacted(4, 9, 9000, 9000, "near"))
    assert transcript.measured is None


def test_what_was_seen_of_strangers_counts_after_a_compaction() -> None:
    page = Source("page", "https://x.example/", b"1", 4, foreign=True)
    ended = CallEnded(1, "c", "fetch_url", True, "page", sources=(page,))
    facts = spoken(1, "look", ended)
    before, after = Transcript(facts), Transcript([*facts, Compacted(1, 1000, 400, 10, "near")])
    assert before.exposure.foreign
    assert after.exposure.foreign == before.exposure.foreign


def test_a_compaction_reads_back_as_it_was_written() -> None:
    fact = Compacted(1, 2, 3, 4, "full", summary="s", usage={"input_tokens": 1})
    assert decode(encode(fact)) == fact


def test_nothing_of_a_compaction_depends_on_anything_but_the_facts() -> None:
    dice = random.Random(3)
    facts = [fact for turn in range(1, 40) for fact in spoken(turn, words(dice, 20))]
    facts.insert(100, Compacted(5, 20, 900, 10, "near", summary="s"))
    assert Transcript(facts).messages == Transcript(facts).messages
    assert len(Transcript(facts).compaction.entries) < len(facts)
