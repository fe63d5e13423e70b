"""A receipt says what the journal knows: what stands at the turn's end, and what the checks of it came to."""

from typing import Final, NamedTuple

import msgspec

from supervisor.agent.receipts.receipt_fold import ReceiptFold
from supervisor.agent.receipts.receipt_text import receipt_lines
from supervisor.journal.facts import CallDecided, CallStarted, TurnEnded, TurnStarted, decode, encode
from tests.each_row import each_row
from tests.supervisor.agent.receipts.histories import Story, effects, story_of


class Said(NamedTuple):
    """A history, an answer, and what is said of it."""

    history: str
    answer: str
    lines: tuple[str, ...]


ROWS: Final = (
    Said("nothing", "Hello!", ()),
    Said("read_some", "It says so.", ()),
    Said("looked", "There are two.", ("receipt: 1 command",)),
    Said("edited", "Done.", ("receipt: 1 file changed",)),
    Said("undone", "Done.", ()),
    Said("denied", "It was denied.", ()),
    Said("tested", "All tests pass.", ("receipt: pytest passed (12); 1 file changed",)),
    Said("failed", "One fails.", ("receipt: pytest failed (1 of 12); 1 file changed",)),
    Said("stale", "Changed.", ("receipt: pytest passed (12), something changed since; 1 file changed",)),
    Said("no_tests", "None.", ("receipt: unittest ran no test; 1 file changed",)),
    Said("script_failed", "It failed.", ("receipt: 2 commands, 2 of them failed, the last with exit code 1",)),
    Said("tested_earlier", "It passed before.", ()),
    Said(
        "piped",
        "All tests pass.",
        (
            "receipt: pytest not known (its exit code is hidden by a pipe); 1 file changed",
            'unproven: "All tests pass": the result of pytest is not known: its exit code is hidden by a pipe',
        ),
    ),
    Said("nothing", "All tests pass.", ('unproven: "All tests pass": no test was run',)),
)


@each_row("said", ROWS)
def test_a_receipt_in_words(said: Said) -> None:
    assert tuple(receipt_lines(story_of(said.history).receipt(said.answer))) == said.lines


def test_what_checks_and_builds_leave_behind_does_not_age_a_check() -> None:
    story = Story()
    story.run("pytest", 0, "1 passed in 0.1s")
    story.run("ruff check .", 0, "", effects(".ruff_cache/x", None, "y"))
    story.run("npm run build", 0, "", effects("dist/app.js", "a", "b", ignored=True))
    told = "receipt: pytest passed (1); ruff passed; npm run build passed; 1 file changed"
    assert receipt_lines(story.receipt()) == [told]


def test_a_check_that_mends_files_leaves_the_one_before_behind() -> None:
    story = Story()
    story.run("pytest", 0, "1 passed in 0.1s")
    story.run("ruff check --fix .", 0, "", effects("src/app.py", "a", "b"))
    told = "receipt: pytest passed (1), something changed since; ruff passed; 1 file changed"
    assert receipt_lines(story.receipt()) == [told]


def test_a_script_that_the_turn_wrote_proves_nothing() -> None:
    story = Story()
    story.edit(path="scripts/test", before=None, after="echo 12 passed")
    story.run("scripts/test", 0, "12 passed in 0.1s")
    receipt = story.receipt("All tests pass.")
    assert receipt is not None
    assert [check.result for check in receipt.checks] == ["unknown"]
    assert len(receipt.unproven) == 1


def test_a_known_pass_is_not_lost_to_a_run_whose_result_is_hidden() -> None:
    story = story_of("tested")
    story.run("pytest | tail -3")
    receipt = story.receipt("All tests pass.")
    assert receipt is not None
    assert receipt.unproven == ()


def test_a_commit_that_nobody_saw_end_is_counted() -> None:
    fold = ReceiptFold()
    fold.apply(TurnStarted(1, "go on"))
    fold.apply(CallStarted(1, "call_1", "run_cmd", '{"command":"make"}', True, "allow", ""))
    fold.apply(CallDecided(1, "call_1", "allow", "", True, effects("a", "a", "b")))
    assert receipt_lines(fold.of(TurnEnded(1, "cancelled", ""))) == ["receipt: 1 command whose changes nobody has seen"]


def test_a_structured_answer_claims_nothing() -> None:
    fold = ReceiptFold()
    fold.apply(TurnStarted(1, "go on", answer_schema={"type": "object"}))
    assert fold.of(TurnEnded(1, "ok", '{"text": "All tests pass."}')) is None


def test_a_receipt_is_a_part_of_its_fact_and_an_older_end_has_none() -> None:
    end = TurnEnded(1, "ok", "Done.", receipt=story_of("stale").receipt("All tests pass."))
    assert decode(encode(end)) == end
    assert decode(b'{"fact":"TurnEnded","turn":1,"status":"ok","answer":"x"}') == TurnEnded(1, "ok", "x")
    assert msgspec.to_builtins(end.receipt)["checks"][0]["changed_since"] is True
