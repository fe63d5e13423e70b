"""A tool call as clients see it, from the facts of the journal."""

import msgspec

from supervisor.acp import extensions
from supervisor.acp.schema import DiffContent, texts_of
from supervisor.daemon.protocol.tool_calls import ended
from supervisor.journal.facts import CallDecided, CallEnded
from tests.supervisor.changes import change, effects


def test_a_call_that_was_killed_shows_what_it_had_printed() -> None:
    killed = CallEnded(
        1, "c", "run_cmd", False, "It took too long.", kind="timeout", details={"stdout": "a\nb\n", "n": 1}
    )
    assert texts_of(ended(killed).content) == ["a\nb\nIt took too long."]


def test_output_of_a_command_is_text_and_its_note_stays() -> None:
    result = '{"stdout":"a\\u001b[2J\\n","stderr":"oh\\n","exit_code":2}'
    command = CallEnded(1, "c", "run_cmd", True, result, note="no file matched")
    assert texts_of(ended(command).content) == ["a\\x1b[2J\noh\nexit code 2\n\n[no file matched]"]
    read = CallEnded(1, "c", "read_file", True, result)
    assert texts_of(ended(read).content) == [result]


def test_the_difference_of_a_call_stays_when_it_has_ended() -> None:
    found = effects(change("~ a", diff="@@ -1 +1 @@\n-x\n+y\n"), change("+ lib/b", diff="+z\n", ignored=True))
    decided = CallDecided(1, "c", "allow", "", True, found, kept="pack")
    done = CallEnded(1, "c", "edit_file", True, "Replaced 1 text in a.")
    update = ended(done, "/root", decided)
    assert update.content is not None
    said, outcome, difference = update.content
    assert texts_of([said, outcome]) == ["Replaced 1 text in a.", "2 files changed, /undo takes it back"]
    assert difference == DiffContent(path="/root/a", old_text="x\n", new_text="y\n")
    facts = msgspec.convert((update.meta or {})[extensions.CALL], extensions.CallFacts)
    assert facts.decided is not None
    assert [each.path for each in facts.decided.differences] == ["a"]
    rejected = msgspec.structs.replace(decided, committed=False)
    failed = msgspec.structs.replace(done, ok=False, kind="denied")
    for shown in (ended(failed, "/root", decided), ended(failed, "/root", rejected)):
        assert not [each for each in shown.content or () if isinstance(each, DiffContent)]
