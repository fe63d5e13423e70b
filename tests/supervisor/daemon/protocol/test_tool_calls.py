"""A tool call as clients see it, from the facts of the journal."""

from supervisor.acp.schema import texts_of
from supervisor.daemon.protocol.tool_calls import ended
from supervisor.journal.facts import CallEnded


def test_a_call_that_was_killed_shows_what_it_had_printed() -> None:
    killed = CallEnded(
        1, "c", "run_cmd", False, "It took too long.", kind="timeout", details={"stdout": "a\nb\n", "n": 1}
    )
    assert texts_of(ended(killed).content) == ["a\nb\nIt took too long."]
