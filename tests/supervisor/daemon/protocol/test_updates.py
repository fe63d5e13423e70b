"""What happened looks the same to who was there and to who loads it later: the same messages, under the same ids."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec
import pytest

from supervisor.acp import extensions
from supervisor.acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    Cost,
    ToolCall,
    ToolCallUpdate,
    Update,
    UsageUpdate,
    texts_of,
)
from supervisor.agent.amount import UNIT
from supervisor.agent.models.model import Retrying, TextDelta, ThoughtDelta
from supervisor.agent.models.model_facts import model_facts
from supervisor.agent.turn import CallOutput, Event
from supervisor.config.config_keys import Config
from supervisor.config.model_keys import LongPromptPrice, ModelConfig, Price
from supervisor.config.settings import Settings
from supervisor.daemon.protocol import tool_calls
from supervisor.daemon.protocol.updates import Projection
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Compacted,
    ContentsRefused,
    Fact,
    ModelRetried,
    Replied,
    ReplyCut,
    SessionChanged,
    ToolsChanged,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from supervisor.journal.kept_content import KeptContent
from supervisor.tools.approval import ApprovalQuestion
from tests.each_row import each_row
from tests.supervisor.changes import effects
from workers.wire.messages import Context

of_default: Final = partial(model_facts, settings=Settings(Config(), Path("config.toml"), Path("/nonexistent")))
Chunk = AgentMessageChunk | AgentThoughtChunk
Message = tuple[str | None, str]
"""An id and a text."""


def replied(turn: int, text: str) -> Replied:
    return Replied(turn, 0, [{"type": "text", "text": text}], "end_turn", {})


def told(projection: Projection, *events: Event) -> list[Update]:
    """Return what somebody hears who is there while it happens."""
    updates: list[Update] = []
    for event in events:
        updates += projection.of_event(event)
        if isinstance(event, Fact):
            projection.apply(event)
    return updates


def loaded(*facts: Fact) -> list[Update]:
    """Return what somebody hears who loads it later."""
    projection = Projection(of_default)
    return [update for fact in facts for update in projection.of_fact(fact)]


def messages(updates: Sequence[Update]) -> list[Message]:
    return [(update.message_id, update.content.text) for update in updates if isinstance(update, AgentMessageChunk)]


# --- a turn that was cancelled in mid-sentence ------------------------------------------------------------------------

CANCELLED: Final = (
    TurnStarted(1, "one"),
    TextDelta("Half a sen"),
    TurnEnded(1, "cancelled", "", kind="cancelled"),
    TurnStarted(2, "two"),
)


@pytest.fixture
def projection() -> Projection:
    return Projection(of_default)


SUMMARY: Final = "The roof leaks."
CUT: Final = ReplyCut(1, 0, "Half a sen", "Hm.")


def test_half_a_sentence_is_loaded_as_it_was_told_and_says_that_it_was_cut(projection: Projection) -> None:
    first, delta, end, _ = CANCELLED
    live = told(projection, first, ThoughtDelta("Hm."), delta, CUT, end)
    later = loaded(TurnStarted(1, "one"), CUT, TurnEnded(1, "cancelled", "", kind="cancelled"))
    assert messages(live) == messages(later) == [("turn-1-step-0", "Half a sen")]
    assert parts(later)[0] == ("AgentThoughtChunk", "Hm.")
    assert parts(later)[-1] == ("AgentThoughtChunk", "\n\n(The reply was cut here.)\n")


def test_a_compaction_is_told_alike_when_it_happens_and_when_it_is_loaded(projection: Projection) -> None:
    fact = Compacted(1, 1, 9, 9, "near", 900, 300, SUMMARY, model="m", usage={"input_tokens": 70}, cost=UNIT // 2)
    live, later = told(projection, TurnStarted(1, "one"), fact), loaded(TurnStarted(1, "one"), fact)
    assert live[-1] == later[-1]
    assert "about 300 tokens in place of 900" in parts(later)[-1][1]
    assert isinstance(later[-1], AgentThoughtChunk)
    done = (later[-1].meta or {})[extensions.COMPACTION]
    assert (done.before, done.after, done.summary, done.cost) == (900, 300, SUMMARY, 0.5)


def test_what_comes_after_a_reply_that_was_cut_is_another_message(projection: Projection) -> None:
    facts: list[Fact] = [CUT, TurnResumed(1), replied(1, "Whole."), TurnEnded(1, "ok", "Whole.")]
    expected = [("turn-1-step-0", "Half a sen"), ("turn-1-step-0-2", "Whole.")]
    assert messages(told(projection, TurnStarted(1, "one"), TextDelta("Half a sen"), *facts)) == expected
    assert messages(loaded(TurnStarted(1, "one"), *facts)) == expected


def test_half_a_sentence_ends_with_its_turn(projection: Projection) -> None:
    assert messages(told(projection, *CANCELLED)) == [("turn-1-step-0", "Half a sen")]
    assert projection.partial == ""


@pytest.mark.parametrize("streamed", [(), (TextDelta("Whole."),)], ids=["told whole", "streamed"])
def test_a_reply_after_a_stream_that_was_cancelled_is_told_once(
    projection: Projection, streamed: tuple[TextDelta, ...]
) -> None:
    told(projection, *CANCELLED)
    assert messages(told(projection, *streamed, replied(2, "Whole."))) == [("turn-2-step-0", "Whole.")]


# --- a request that is made again -------------------------------------------------------------------------------------

RETRY: Final = Retrying(1, "overloaded", "later", 0.0)
RETRIED: Final = ModelRetried(1, 1, "overloaded", "later", 0.0)
TRIES: Final[dict[str, list[Retrying | TextDelta]]] = {
    "at once": [TextDelta("Done.")],
    "once before the first word": [RETRY, TextDelta("Done.")],
    "twice before the first word": [RETRY, RETRY, TextDelta("Done.")],
    "in mid-sentence": [TextDelta("Do"), RETRY, TextDelta("Done.")],
    "in mid-sentence, and before its first word again": [TextDelta("Do"), RETRY, RETRY, TextDelta("Done.")],
    "before the first word, then in mid-sentence": [RETRY, TextDelta("Do"), RETRY, TextDelta("Done.")],
    "after it, told whole": [TextDelta("Do"), RETRY],
}


def retried(tries: Sequence[Event]) -> Iterator[ModelRetried]:
    """Yield the facts of a request that is made again, with what each try had shown."""
    text = ""
    for each in tries:
        if isinstance(each, TextDelta):
            text = each.text
        elif each is RETRY:
            yield msgspec.structs.replace(RETRIED, text=text)
            text = ""


@each_row("tries", TRIES.values(), ids=TRIES)
def test_a_message_has_the_same_id_when_it_is_loaded(tries: list[Retrying | TextDelta]) -> None:
    first, last = TurnStarted(1, "go"), TurnEnded(1, "ok", "Done.")
    events: list[Event] = [first, *tries, replied(1, "Done."), last]
    facts: list[Fact] = [first, *retried(tries), replied(1, "Done."), last]
    again: list[Fact] = [TurnStarted(2, "again"), replied(2, "Yes."), TurnEnded(2, "ok", "Yes.")]
    live = messages(told(Projection(of_default), *events, *again))
    assert live == messages(loaded(*facts, *again))
    assert len({number for number, _ in live}) == len(live)


def test_what_a_person_is_to_know_of_a_turn_is_told_at_its_end() -> None:
    facts: list[Fact] = [TurnStarted(1, "go"), replied(1, "Done."), TurnEnded(1, "ok", "Done.", note="You will run a.")]
    last = loaded(*facts)[-1]
    assert isinstance(last, AgentThoughtChunk)
    assert (last.content.text.strip(), last.message_id) == ("(You will run a.)", "turn-1-note")


# --- a call that changes something ------------------------------------------------------------------------------------

TOUCH: Final = CallStarted(1, "c", "exec_shell", '{"command": "touch", "args": ["a"]}', True, "allow", "")
EFFECTS: Final = effects("+ a")
COMMITTED: Final = CallDecided(1, "c", "ask", "why", True, EFFECTS, True, decided_by="console", kept="pack")
REJECTED: Final = CallDecided(1, "c", "ask", "why", False, EFFECTS, False, decided_by="console")
ENDED: Final = CallEnded(1, "c", "exec_shell", True, "done")
DENIED: Final = CallEnded(1, "c", "exec_shell", False, "no", kind="denied")
EDIT: Final = CallDecided(1, "c", "ask", "why", False, EFFECTS, True, edited='{"command": "ls"}')
AGAIN: Final = CallStarted(1, "c", "exec_shell", TOUCH.arguments, True, "allow", "", edited=EDIT.edited, again=True)

WAYS: Final[list[tuple[str, list[Fact], list[tuple[str | None, list[str]]]]]] = [
    (
        "committed",
        [TOUCH, COMMITTED, ENDED],
        [("in_progress", []), ("completed", ["done", "1 file changed, /undo takes it back"])],
    ),
    ("rejected", [TOUCH, REJECTED, DENIED], [(None, []), ("failed", ["no"])]),
    ("edited", [TOUCH, EDIT, AGAIN, ENDED], [(None, []), ("in_progress", []), ("completed", ["done"])]),
    ("in conflict", [TOUCH, COMMITTED, DENIED], [("in_progress", []), ("failed", ["no"])]),
]
"""What happens to a call, and what is told of it after its start."""


@pytest.mark.parametrize(("facts", "seen"), [way[1:] for way in WAYS], ids=[way[0] for way in WAYS])
def test_a_decision_is_told_live_and_later(facts: list[Fact], seen: list[tuple[str | None, list[str]]]) -> None:
    first: Fact = TurnStarted(1, "go")
    for updates in (told(Projection(of_default), first, *facts), loaded(first, *facts)):
        calls = [each for each in updates if isinstance(each, ToolCall | ToolCallUpdate)]
        assert [type(each) for each in calls] == [ToolCall] + [ToolCallUpdate] * (len(calls) - 1)
        assert [(each.status, texts_of(each.content)) for each in calls] == [("in_progress", []), *seen]


def test_a_question_about_a_known_call_is_an_update_with_everything_to_be_seen(projection: Projection) -> None:
    told(projection, TurnStarted(1, "go"), TOUCH)
    _told, call = tool_calls.awaiting_approval(ApprovalQuestion(TOUCH, "effects", "why\n", EFFECTS), projection.root)
    shown = projection.of_question(call)
    assert isinstance(shown, ToolCallUpdate)
    texts = texts_of(shown.content)
    assert texts[0] == "```\ntouch a\n```"
    assert texts[1] == "```\nwhy\\n\n```"
    assert "  A  a  " in texts[2]


def test_output_of_a_call_before_it_was_edited_is_not_shown_again(projection: Projection) -> None:
    updates = told(projection, TurnStarted(1, "go"), TOUCH, CallOutput("c", "old"), EDIT, AGAIN, CallOutput("c", "new"))
    assert isinstance(updates[-1], ToolCallUpdate)
    assert updates[-1].content == tool_calls.text("new")


def test_output_of_a_call_that_nobody_was_told_of_is_told_to_nobody() -> None:
    assert told(Projection(of_default), CallOutput("unknown", "text")) == []


def test_people_are_told_which_tools_are_gone_and_which_are_back() -> None:
    facts = (
        TurnStarted(1, "one"),
        ToolsChanged(1, "web", ("fetch_url",), "The web workers are out."),
        ToolsChanged(1, "web", ("fetch_url",)),
    )
    said = [update.content.text.strip() for update in loaded(*facts) if isinstance(update, AgentThoughtChunk)]
    gone = (
        "(These tools cannot be called for now and will be restored automatically: fetch_url. The web workers are out.)"
    )
    assert said == [gone, "(These tools work again and can be called: fetch_url.)"]
    assert told(Projection(of_default), *facts) == [
        each for each in loaded(*facts) if isinstance(each, AgentThoughtChunk)
    ]


def test_people_are_told_what_a_models_server_refuses_live_and_later() -> None:
    refused = ContentsRefused(1, "m", (KeptContent("0", "application/pdf", 9, "a.pdf", pages=2),), "Not valid.\x1b[2J")
    facts = (TurnStarted(1, "one"), refused)
    (said,) = [update.content.text.strip() for update in loaded(*facts) if isinstance(update, AgentThoughtChunk)]
    words = "The server of m refuses a.pdf: PDF document, 2 pages, 9 B. From here on this model reads words instead."
    assert said.startswith(f"({words} It says: Not valid.")
    assert "\x1b" not in said
    (live,) = told(Projection(of_default), *facts)
    assert live == loaded(*facts)[-1]


# --- thinking ---------------------------------------------------------------------------------------------------------

THOUGHTFUL: Final = Replied(
    1,
    0,
    [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "One"},
        {"type": "text", "text": " two."},
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "thinking", "thinking": "Yes.", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "read_file", "input": {}},
    ],
    "tool_use",
    {},
)
STREAMED: Final = (ThoughtDelta("Hm."), TextDelta("One"), TextDelta(" two."), ThoughtDelta("Yes."))


def parts(updates: Sequence[Update]) -> list[tuple[str, str]]:
    """Return what was said and thought, pieces of one thing joined."""
    told = [(type(each).__name__, each.content.text) for each in updates if isinstance(each, Chunk)]
    return [(kind, "".join(text for _, text in pieces)) for kind, pieces in groupby(told, lambda each: each[0])]


@pytest.mark.parametrize("streamed", [(), STREAMED, STREAMED[:1]], ids=["told whole", "streamed", "only thought of"])
def test_thinking_is_told_once_and_in_its_order(projection: Projection, streamed: tuple[Event, ...]) -> None:
    whole = [("AgentThoughtChunk", "Hm."), ("AgentMessageChunk", "One two."), ("AgentThoughtChunk", "Yes.")]
    expected = whole[:2] if len(streamed) == 1 else whole
    assert parts(told(projection, TurnStarted(1, "go"), *streamed, THOUGHTFUL)) == expected
    assert parts(loaded(TurnStarted(1, "go"), THOUGHTFUL)) == whole


def test_a_try_s_thinking_does_not_stand_for_the_next_one_s(projection: Projection) -> None:
    again = Retrying(1, "overloaded", "", 0.0)
    heard = told(projection, TurnStarted(1, "go"), ThoughtDelta("No."), again, replied(1, "Yes."))
    assert parts(heard) == [("AgentThoughtChunk", "No."), ("AgentMessageChunk", "Yes.")]


# --- tokens and money -------------------------------------------------------------------------------------------------


def test_each_reply_costs_what_its_own_prompt_makes_it_cost() -> None:
    price = Price(1.0, 10.0, currency="EUR", long_prompt=LongPromptPrice(100, 2.0, 20.0))
    config = Config(models={"m": ModelConfig(window=2048, prices=price)})
    projection = Projection(partial(model_facts, settings=Settings(config, Path("config.toml"), Path("/nonexistent"))))
    facts = (
        SessionChanged("vault", "m", Context(working_directory="/r"), ()),
        Replied(1, 0, [], "end_turn", {"input_tokens": 100, "output_tokens": 10}),
        Replied(1, 1, [], "end_turn", {"input_tokens": 50, "cache_read_input_tokens": 51, "output_tokens": 10}),
    )
    for fact in facts:
        projection.apply(fact)
    assert projection.usage.cost == pytest.approx((100 + 10 * 10 + (50 + 51) * 2 + 10 * 20) / 1e6)
    (usage,) = projection.of_usage()
    assert isinstance(usage, UsageUpdate)
    assert (usage.used, usage.size, usage.cost) == (111, 2048, Cost(amount=0.000602, currency="EUR"))
