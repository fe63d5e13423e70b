"""Whose commits count as changes of a session's root: those of others, on it, around it or beneath it, since then."""

from typing import Final

import pytest

from supervisor.agent.others_changes import changed_by_others
from supervisor.journal.facts import CallDecided, CallEnded, SessionChanged, SessionOpened
from supervisor.journal.journal import Journal
from workers.wire.messages import Context

COMMITS: Final = CallDecided(1, "w", "allow", "", committed=True)
ROWS: Final = {
    "the same": ("/work/notes", COMMITS, True),
    "beneath it": ("/work/notes/old", COMMITS, True),
    "around it": ("/work", COMMITS, True),
    "beside it": ("/work/notes2", COMMITS, False),
    "a rejected change": ("/work/notes", CallDecided(1, "w", "ask", "", committed=False), False),
    "an undo": ("/work/notes", CallDecided(0, "u", "allow", "", committed=False, undoes="w"), True),
}


def opened(root: str) -> SessionOpened:
    return SessionOpened("vault", "m", Context(root), (), "test", "1")


@pytest.mark.parametrize(("place", "decided", "changed"), ROWS.values(), ids=ROWS)
def test_another_session_has_changed_it(journal: Journal, place: str, decided: CallDecided, changed: bool) -> None:
    ended = CallEnded(1, "first", "look", True, "same")
    journal.append("other", opened("/elsewhere"), COMMITS, SessionChanged("vault", "m", Context(place), ()))
    journal.append("own", opened("/work/notes"), ended)
    assert not changed_by_others(journal.path, "own", "first")[0]  # what came before is none of it
    journal.append("own", COMMITS)
    journal.append("other", decided)
    assert changed_by_others(journal.path, "own", "first")[0] is changed
