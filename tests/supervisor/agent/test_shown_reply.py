"""What was shown of a reply is kept until a fact says what became of it, and comes back after a kill exactly once."""

import os
from pathlib import Path
from typing import Final

import pytest

from supervisor.agent.models.model import TextDelta, ThoughtDelta
from supervisor.agent.shown_reply import ShownReply, file_of, left_behind, remove
from supervisor.agent.transcript import Transcript
from supervisor.errors import JournalError
from supervisor.journal.facts import Fact, ModelRetried, Replied, ReplyCut, TurnEnded, TurnStarted

BEGUN: Final = TurnStarted(1, "go")
SHOWN: Final = (ThoughtDelta("Hm."), TextDelta("Half a\nsen"), TextDelta("té"))
CUT: Final = ReplyCut(1, 0, "Half a\nsenté", "Hm.")
LATER: Final[dict[str, tuple[list[Fact], list[ReplyCut]]]] = {
    "nothing": ([], [CUT]),
    "its fact": ([CUT], []),
    "another try": ([ModelRetried(1, 1, "overloaded", "later", 0.0, CUT.text, CUT.thinking)], []),
    "the whole of it": ([Replied(1, 0, [{"type": "text", "text": "Whole."}], "end_turn", {})], []),
    "the turn's end": ([TurnEnded(1, "error", "", kind="interrupted")], []),
    "another turn": ([TurnEnded(1, "error", "", kind="overloaded"), TurnStarted(2, "again")], []),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file_of(tmp_path / "journal.db", "s")


def shown(path: Path, *facts: Fact) -> ShownReply:
    """Return a reply of which something was shown, after these facts."""
    reply = ShownReply(path, Transcript([BEGUN, *facts]))
    for piece in SHOWN:
        reply.add(piece)
    return reply


@pytest.mark.parametrize(("facts", "cut"), LATER.values(), ids=LATER)
def test_it_is_a_fact_unless_the_journal_has_what_became_of_it(
    path: Path, facts: list[Fact], cut: list[ReplyCut]
) -> None:
    reply = shown(path)
    assert left_behind(path, Transcript([BEGUN, *facts])) == cut
    assert reply.cut() == [CUT]
    reply.close()


@pytest.mark.parametrize("lost", range(1, 12))
def test_a_piece_that_was_not_written_to_its_end_was_not_shown(path: Path, lost: int) -> None:
    shown(path).close()
    os.truncate(path, path.stat().st_size - lost)
    assert left_behind(path, Transcript([BEGUN])) == [ReplyCut(1, 0, "Half a\nsen", "Hm.")]


def test_the_next_reply_of_a_turn_is_told_apart(path: Path) -> None:
    known = Transcript([BEGUN])
    reply = ShownReply(path, known)
    for piece in SHOWN:
        reply.add(piece)
        reply.forget()
        known.apply(Replied(1, known.step, [{"type": "text", "text": "So far."}], "pause_turn", {}))
    assert left_behind(path, known) == []
    reply.add(SHOWN[-1])
    assert left_behind(path, known) == [ReplyCut(1, 3, "té")]


def test_its_file_is_its_owners_and_goes_with_the_turn_unless_something_is_no_fact(path: Path) -> None:
    reply = shown(path)
    reply.close()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    reply.add(SHOWN[-1])
    reply.forget()
    reply.close()
    assert not path.exists()


def test_nothing_is_left_where_nothing_was_shown(path: Path) -> None:
    ShownReply(path, Transcript([BEGUN])).close()
    assert left_behind(path, Transcript([BEGUN])) == []
    remove(path)
    assert not path.parent.exists()


@pytest.mark.parametrize(
    "text", [b"no JSON\n", b"[true, 1]\n", b'{"turn": 1, "step": 0}\n', b"\xff\n", b'[false, "x"]\n']
)
def test_a_file_that_is_none_of_ours_is_no_fact(path: Path, text: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(text)
    path.chmod(0o600)
    assert left_behind(path, Transcript([BEGUN])) == []
    path.chmod(0o622)
    assert left_behind(path, Transcript([BEGUN])) == []


def test_what_cannot_be_kept_is_not_shown(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(JournalError, match="cannot be kept"):
        shown(path)
    path.rmdir()
    path.symlink_to("/dev/full")
    with pytest.raises(JournalError, match="cannot be kept"):
        shown(path)
