"""`/undo` in the console: what is asked of the daemon, and what the person is shown."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from supervisor.acp import extensions
from tests.supervisor.clients.console.fake_daemon import SESSION, FakeDaemon, called, ended
from tests.supervisor.clients.console.terminals import PATIENCE, piped

TYPED = "go\n/undo\n/undo 1 force\n/undo --turn\n/undo session\n/undo call-9\n/undo 2\n/undo a b\n"
ASKED = [
    {"sessionId": SESSION},
    {"sessionId": SESSION, "calls": ["call-1"], "force": True},
    {"sessionId": SESSION, "scope": "turn"},
    {"sessionId": SESSION, "scope": "session"},
    {"sessionId": SESSION, "calls": ["call-9"]},
]
WELL = extensions.Undone(
    call="call-1",
    tool="write_file",
    title="write_file a\x1b[2J",
    ok=True,
    undo="call_2",
    message="Restored 1 file.",
    changes=(extensions.Restored(path="b\x1b[2J", what="added"),),
)
BADLY = extensions.Undone(
    call="call-0", tool="t", title="t", ok=False, kind="conflict", message="It has changed since."
)


def test_undo_asks_for_what_was_typed_and_shows_what_became_of_it(home: Path, root: Path, daemon: FakeDaemon) -> None:
    with ThreadPoolExecutor(1) as pool:
        console = pool.submit(piped, home, root.parent, TYPED, {})
        daemon.prompt()
        daemon.tell(called(1, "write_file", '{"path": "a"}'), ended(1, "write_file", "ok"))
        daemon.end()
        for number, params in enumerate(ASKED):
            asked = daemon.next(extensions.UNDO_METHOD)
            assert asked.params == params
            steps = (WELL, BADLY) if number == 0 else ()
            daemon.answer(asked, extensions.UndoResult(session_id=SESSION, steps=steps))
        done = console.result(PATIENCE)
    assert done.stdout.splitlines() == [
        r"undone: write_file a\x1b[2J  (call-1, by call_2; `/undo call_2` brings it back)",
        r"    brought back b\x1b[2J",
        "    Restored 1 file.",
        "not undone: t  (call-0)",
        "    conflict: It has changed since.",
    ]
    assert done.stderr.count("Nothing to undo: this session has changed nothing that still stands.") == 4
    assert done.stderr.count("/undo takes [N|turn|session|CALL] [force]") == 2
