"""`strongroom undo`: which session it means, what it shows first, and how it ends."""

import os
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.clients.undo import document, planned, preview, told, undoable
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, StrongroomError
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, SessionOpened
from supervisor.journal.journal import Journal
from tests.forked import ForkedStrongroom
from tests.supervisor.command import finished
from workers.changes.effects import Change, Effects, NodeState
from workers.wire.messages import Context

EFFECTS: Final = Effects((Change("evil\x1b[2J\n", "added", after=NodeState("file", 0o644)),), {"added": 1}, b"")


def lived(journal: Journal, settings: Settings, session: str, root: str, *calls: str, **more: object) -> None:
    """Record a session in which calls were committed, and keep something of them."""
    settings.packs.mkdir(exist_ok=True)
    journal.append(session, SessionOpened("vault", "", Context(root), (), "call", "1", cwd=f"{root}/sub"))
    for call in calls:
        pack = f"{session}.{call}"
        (settings.packs / pack).touch()
        decided: Fact = CallDecided(0, call, "allow", "", True, EFFECTS, kept=pack, undoes=str(more.get("undoes", "")))
        started = CallStarted(0, call, "write_file", '{"path": "x"}', True, "allow", "", rehearsed=True)
        journal.append(session, started, decided, CallEnded(0, call, "write_file", True, ""))


def chosen(settings: Settings, call: str | None = None, session: str | None = None, here: str = "/a") -> list[str]:
    found = planned(settings, call, "session", session, here)
    return [found.session, *(step.call for step in found.steps)]


def test_the_newest_session_here_with_a_change_that_stands_is_meant(journal: Journal, settings: Settings) -> None:
    lived(journal, settings, "first", "/a", "call_1", "call_2")
    lived(journal, settings, "second", "/a", "call_1")
    lived(journal, settings, "elsewhere", "/b", "call_9")
    lived(journal, settings, "idle", "/a")
    assert chosen(settings) == ["second", "call_1"]
    assert chosen(settings, here="/b/sub") == ["elsewhere", "call_9"]
    lived(journal, settings, "second", "/a", "call_2", undoes="call_1")
    assert chosen(settings) == ["first", "call_2", "call_1"]
    assert [step.call for step in undoable(settings, "/a")] == ["call_2", "call_1"]


def test_the_last_change_is_the_journals_last_whatever_session_was_used_since(
    journal: Journal, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(journal, settings, "first", "/a", "call_1")
    with monkeypatch.context() as earlier:  # the clock is set back
        earlier.setattr("time.time", lambda: 1.0)
        lived(journal, settings, "second", "/a", "call_1")
        lived(journal, settings, "first", "/a", "call_2")
        lived(journal, settings, "second", "/a", "call_2")
    journal.append("first", CallStarted(0, "call_9", "read_file", "{}", False, "allow", ""))
    found = []
    for number in range(4):
        wanted = planned(settings, None, "last", None, "/a")
        found.append((wanted.session, wanted.steps[0].call))
        lived(journal, settings, wanted.session, "/a", f"undo_{number}", undoes=wanted.steps[0].call)
    assert found == [("second", "call_2"), ("first", "call_2"), ("second", "call_1"), ("first", "call_1")]


def test_a_call_says_which_session_and_of_several_the_newest_here_is_meant(
    journal: Journal, settings: Settings
) -> None:
    lived(journal, settings, "first", "/a", "call_1", "call_2")
    lived(journal, settings, "second", "/a", "call_1")
    lived(journal, settings, "third", "/b", "call_1")
    assert chosen(settings, "call_2", here="/elsewhere") == ["first", "call_2"]
    assert chosen(settings, "call_1") == ["second", "call_1"]
    assert chosen(settings, "call_1", "first") == ["first", "call_1"]
    with pytest.raises(ConfigError, match=r"3 sessions have a call 'call_1': third, second, first\. Choose one"):
        planned(settings, "call_1", "last", None, "/elsewhere")


ABSENT: Final = {
    "nothing here": (None, None, "Nothing to undo: no session on /b has changed anything that still stands."),
    "no call": ("call_7", None, "No call 'call_7'. `strongroom history SESSION` shows"),
    "no call there": ("call_7", "first", "No call 'call_7' in the session first."),
    "no session": (None, "nobody", "No session 'nobody'"),
    "nothing there": (None, "idle", "Nothing to undo: the session idle has changed nothing"),
}


@pytest.mark.parametrize(("call", "session", "words"), ABSENT.values(), ids=ABSENT)
def test_a_call_or_session_that_is_not_there_is_said(
    journal: Journal, settings: Settings, call: str | None, session: str | None, words: str
) -> None:
    lived(journal, settings, "first", "/a", "call_1")
    lived(journal, settings, "idle", "/a")
    with pytest.raises(StrongroomError) as caught:
        planned(settings, call, "last", session, "/b")
    assert str(caught.value).startswith(words)


def test_without_a_journal_there_is_nothing_and_none_is_made(settings: Settings) -> None:
    with pytest.raises(StrongroomError, match="there is no journal yet"):
        planned(settings, None, "last", None, "/a")
    assert not settings.journal.exists()


def test_a_preview_says_what_and_where_and_nothing_reaches_the_terminal(journal: Journal, settings: Settings) -> None:
    lived(journal, settings, "s", "/a", "call_1")
    first, second, third = preview(planned(settings, None, "last", None, "/a")).splitlines()
    assert first == "session s, root /a"
    assert second.startswith("write_file x  (call_1, 20")
    assert third == r"    removes evil\x1b[2J\n"


def test_the_end_of_each_call_is_told() -> None:
    restored = (extensions.Restored(path="b", what="added"),)
    well = extensions.Undone(
        call="c1", tool="t", title="t b", ok=True, undo="c2", message="Well.", changes=restored, more=1
    )
    badly = extensions.Undone(call="c0", tool="t", title="t a", ok=False, kind="conflict", message="Changed since.")
    result = extensions.UndoResult(session_id="s", steps=(well, badly))
    assert told(result).splitlines() == [
        "undone: t b  (c1, by c2; `strongroom undo c2` brings it back)",
        "    brought back b",
        "    2 names in all",
        "    Well.",
        "not undone: t a  (c0)",
        "    conflict: Changed since.",
    ]
    first, second = document(result)["steps"]
    assert (first["changes"], first["more"], first["kind"]) == ([{"path": "b", "what": "added"}], 1, None)
    assert (second["undo"], second["kind"], second["changes"]) == (None, "conflict", [])


def test_on_a_terminal_the_person_is_asked_and_only_a_yes_is_one(
    journal: Journal, settings: Settings, home: Path, root: Path
) -> None:
    lived(journal, settings, "s", str(root), "call_1")
    ours_end, terminal = os.openpty()
    process = ForkedStrongroom(home, root).begin(("undo",), ("supervisor",), (), terminal, terminal)
    os.close(terminal)
    os.write(ours_end, b"\n")
    done = finished(process)
    os.close(ours_end)
    assert (done.code, "Undo this? [y/N]" in done.err, "nothing was undone" in done.err) == (1, True, True)
