"""What the console makes of updates: what is shown, once, and what is kept."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from supervisor.acp import extensions, schema
from supervisor.clients.console.session_state import SessionState
from supervisor.clients.console.shown import AnswerEnds, Item, Note, Said, ShownCall, ShownPrompt, ShownThought
from supervisor.journal.facts import ToolsChanged
from supervisor.tools.outcomes import availability_notice
from tests.supervisor.clients.console.fake_daemon import called, ended, heard, said


def shown(items: Sequence[Item]) -> list[str]:
    """Return items as words: texts as they are, the rest by name."""
    words = []
    for item in items:
        match item:
            case Said() | ShownPrompt() | Note():
                words.append(item.text)
            case ShownThought():
                words.append(f"({item.text})")
            case ShownCall():
                words.append(f"{item.tool} {item.kind or item.status}")
            case _:
                words.append("|")
    return words


def take(view: SessionState, *updates: schema.Update) -> list[str]:
    return shown([item for update in updates for item in view.take(update)])


def loaded(*updates: schema.Update) -> SessionState:
    view = SessionState()
    take(view, *updates)
    return view


def test_an_answer_ends_where_a_call_begins() -> None:
    updates = (said("Let "), said("me."), called(1, "read_file", "{}"), ended(1, "read_file", "x"), said("So.", "2"))
    assert take(SessionState(), *updates) == ["Let ", "me.", "|", "read_file completed", "So."]


def test_a_call_that_ends_twice_is_shown_once() -> None:
    view = SessionState()
    over = ended(1, "read_file", "no", "not_found")
    assert take(view, called(1, "read_file", "{}"), over, over) == ["read_file not_found"]
    assert view.calls[0].output == "no"


def test_a_call_s_arguments_are_kept_from_its_beginning() -> None:
    (call,) = loaded(called(1, "read_file", '{"path": "a"}'), ended(1, "read_file", "x")).calls
    assert (call.arguments, call.seconds) == ('{"path": "a"}', 0.25)


AGAIN = [
    ("the same", "One. Two.", ["One. Two.", " Three."], [" Three."]),
    ("in pieces", "One. Two.", ["One.", " Two. Th", "ree."], [" Th", "ree."]),
    ("cut where it was", "One.", ["One."], []),
    ("another", "One.", ["Other."], ["|", "The answer starts again.", "Other."]),
    ("nothing was shown", "", ["One."], ["One."]),
]


@pytest.mark.parametrize(("seen", "pieces", "new"), [row[1:] for row in AGAIN], ids=[row[0] for row in AGAIN])
def test_an_answer_that_is_told_again_is_shown_from_where_it_was(seen: str, pieces: list[str], new: list[str]) -> None:
    view = loaded(said(f"{seen} and what was not finished"))
    view.rewind_answer(len(seen))
    assert take(view, *(said(piece, "again") for piece in pieces)) == new
    assert [entry.text for entry in view.entries if not isinstance(entry, ShownCall)] == ["".join(pieces)]


HISTORY = (heard("go"), said("Look."), called(1, "read_file", "{}"), ended(1, "read_file", "x"), said("One. ", "2"))


def test_of_a_history_only_what_is_new_is_shown() -> None:
    old = loaded(*HISTORY)
    old.rewind_answer(len("One. "))
    fresh = loaded(*HISTORY[:-1], said("One. Two.", "2"), called(2, "read_file", "{}"), ended(2, "read_file", "y"))
    assert shown(fresh.since(old)) == ["Two.", "|", "read_file completed"]
    assert shown(loaded(*HISTORY[:4]).since(loaded(*HISTORY[:3]))) == ["read_file completed"]  # a call ended meanwhile
    again = (called(2, "read_file", "{}"), ended(2, "read_file", "x"), said("Look.", "2"))  # the same answer twice
    assert shown(loaded(*HISTORY[:4], *again).since(loaded(*HISTORY[:4]))) == ["read_file completed", "Look."]


def test_an_answer_that_was_lost_goes_on_after_what_is_on_the_screen() -> None:
    old = loaded(*HISTORY)
    old.rewind_answer(3)
    fresh = loaded(*HISTORY[:-1])
    assert shown(fresh.since(old)) == []
    assert take(fresh, said("One. Two.", "2")) == [". Two."]


def test_that_a_reply_was_cut_is_said_below_it_and_is_no_thought() -> None:
    old = loaded(*HISTORY)
    old.rewind_answer(3)
    fresh = loaded(*HISTORY, schema.AgentThoughtChunk.of("\n\n(The reply was cut here.)\n", "2-cut"))
    assert shown(fresh.since(old)) == [". ", "|", "The reply was cut here."]
    assert fresh.last_thought is None


def test_a_whole_history_is_shown_to_an_empty_screen() -> None:
    fresh = loaded(*HISTORY)
    assert shown(fresh.since(SessionState())) == ["go", "Look.", "|", "read_file completed", "One. "]
    assert take(fresh, said("Two.", "2")) == ["Two."]
    assert fresh.finished(None) == [AnswerEnds()]


FAILED: Final = extensions.TurnSummary(turn=1, status="error", answer="", kind="timeout", message="No.")
ENDS = [
    (extensions.TurnSummary(turn=1, status="ok", answer="x"), []),
    (extensions.TurnSummary(turn=1, status="cancelled", answer=""), ["cancelled"]),
    (FAILED, ["timeout: No."]),
    (None, []),
]


@pytest.mark.parametrize(("summary", "words"), ENDS)
def test_a_turn_s_end_is_told(summary: extensions.TurnSummary | None, words: list[str]) -> None:
    view = SessionState()
    view.sent("go")
    assert shown(view.finished(summary)) == words
    assert view.turn_state == "Input"


def thinks(text: str, message: str = "turn-1-step-0") -> schema.AgentThoughtChunk:
    return schema.AgentThoughtChunk(content=schema.Text(text=text), message_id=message)


def test_what_was_thought_is_shown_whole_where_the_model_goes_on_to_something_else() -> None:
    view = SessionState()
    assert take(view, thinks("Let me "), thinks("see.")) == []
    assert view.thought == "Let me see."
    assert take(view, said("So."), said(" It is.")) == ["(Let me see.)", "So.", " It is."]
    assert take(view, thinks("And?"), called(1, "read_file", "{}")) == ["|", "(And?)"]
    assert take(view, ended(1, "read_file", "x"), thinks("Hm.", "2")) == ["read_file completed"]
    assert shown(view.finished(None)) == ["(Hm.)"]
    assert [entry.text for entry in view.entries if isinstance(entry, ShownThought)] == ["Let me see.", "And?", "Hm."]


def test_thinking_of_a_try_that_failed_is_not_shown_with_the_next_one_s() -> None:
    view = loaded(thinks("First."))
    view.rewind_answer(0)
    assert take(view, thinks("Second.", "turn-1-step-0-2"), said("So.", "turn-1-step-0-2")) == ["(Second.)", "So."]


def test_an_answer_goes_on_where_it_was_though_its_next_try_thinks_first() -> None:
    view = loaded(said("One. Two."))
    view.rewind_answer(len("One."))
    assert take(view, thinks("Hm.", "2"), said("One. Two.", "2")) == ["(Hm.)", " Two."]


def test_of_a_history_no_thought_is_shown_twice() -> None:
    history = (heard("go"), thinks("Hm."), said("So."), thinks("Yes."), said("It is."))
    old, fresh = loaded(*history), loaded(*history, thinks("New.", "3"), called(1, "read_file", "{}"))
    assert shown(fresh.since(old)) == ["(New.)"]
    assert shown(loaded(*history).since(SessionState())) == ["go", "(Hm.)", "So.", "|", "(Yes.)", "It is."]


def test_empty_thinking_is_none() -> None:
    assert take(SessionState(), thinks(""), thinks("\n"), said("So.")) == ["So."]


def test_a_failure_is_told_once() -> None:
    view = SessionState()
    failure = schema.AgentThoughtChunk(content=schema.Text(text="\n\n(timeout: No.)\n"), message_id="turn-1-end")
    assert take(view, failure) == ["timeout: No."]
    assert view.finished(FAILED) == []


def test_that_tools_are_gone_or_back_is_told_and_remembered() -> None:
    view = SessionState()
    gone = ToolsChanged(1, "search", ("search_files",), "The workers died too often.")
    back = ToolsChanged(1, "search", ("search_files",))
    for fact in (gone, back):
        text = f"({availability_notice(fact)})"
        update = schema.AgentThoughtChunk(content=schema.Text(text=f"\n\n{text}\n"), message_id="turn-1-tools-0-search")
        assert take(view, update) == [availability_notice(fact)]
        assert view.tools_note == availability_notice(fact)
    assert view.thought == ""


@pytest.mark.parametrize("kind", ["note", "suspended-0-loop", "unseen-0", "refused-0"])
def test_what_a_person_is_to_know_of_a_turn_is_a_note(kind: str) -> None:
    update = schema.AgentThoughtChunk(content=schema.Text(text="\n\n(You will run a.)\n"), message_id=f"turn-1-{kind}")
    view = loaded()
    assert take(view, update) == ["You will run a."]
    assert view.thought == ""


def test_options_say_what_the_session_is() -> None:
    option = schema.ConfigOption(id="model", name="", category="", current_value="other", options=[])
    view = loaded(schema.ConfigOptions(config_options=[option]), schema.UsageUpdate(used=5, size=10))
    assert (view.facts.model, view.used, view.size) == ("other", 5, 10)


# --- a call that changes something ------------------------------------------------------------------------------------


def update(status: schema.ToolStatus | None, *texts: str, **facts: Any) -> schema.ToolCallUpdate:
    content: list[Any] = [schema.Content(content=schema.Text(text=text)) for text in texts]
    meta = {extensions.CALL: msgspec.to_builtins(extensions.CallFacts(tool="exec_shell", **facts))}
    return schema.ToolCallUpdate(tool_call_id="call-1", status=status, content=content or None, meta=meta)


COMMITTED: Final = extensions.Decided(committed=True, changed="1 file", kept=True)
PRINTED: Final = update("in_progress", "tick\n")
PROPOSED: Final = update("pending", "Would change")
APPLIED: Final = update("in_progress", decided=COMMITTED)
OUTPUTS: Final = [
    ([PRINTED, PROPOSED], "tick\n", ""),
    ([PRINTED, PROPOSED, APPLIED], "tick\n", ""),
    (
        [PRINTED, PROPOSED, APPLIED, update("completed", "result", "words", decided=COMMITTED)],
        "result",
        "1 file changed, /undo takes it back",
    ),
    ([PRINTED, PROPOSED, APPLIED, update("failed", "no", kind="conflict")], "no", ""),
    ([PRINTED, PROPOSED, update("in_progress", edited="{}"), PROPOSED], "", ""),
    ([PRINTED, update("failed", "cut off", kind="cancelled")], "tick\ncut off", ""),
]


@pytest.mark.parametrize(("updates", "output", "outcome"), OUTPUTS, ids=range(len(OUTPUTS)))
def test_output_of_a_call_is_not_mixed_up_with_its_effects(
    updates: list[schema.ToolCallUpdate], output: str, outcome: str
) -> None:
    view = loaded(called(1, "exec_shell", "{}", "execute"), *updates)
    (call,) = view.calls
    assert (call.output, call.outcome) == (output, outcome)
    assert view.output_of("call-1") == output
