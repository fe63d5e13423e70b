"""The tool recall through the daemon: offered without a worker, and run on the session's own journal."""

import json
from pathlib import Path

from supervisor.journal.facts import CallEnded, TurnStarted
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.supervisor.histories import DONE, call


def test_a_model_has_back_what_it_was_shown(daemon: DaemonProcess, client: Lines, root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_text("The zebrafinch sings at dawn.")
    daemon.record("other", TurnStarted(1, "The zebrafinch of another session."))
    read_file = call("read_file", path="a.txt")
    recalls = [call("recall", query="when do zebrafinches sing"), call("recall", call="0_0")]
    model = scripted(
        tmp_path / "m.jsonl", {"calls": [read_file]}, DONE, {"text": "A zebrafinch?", "calls": recalls}, DONE
    )
    session = client.new_session(root, model=model, profile="vault")
    client.prompt(session, "Read a.txt.")
    client.prompt(session, "When do they sing, the zebrafinches?")
    ended = {each.call: each for each in daemon.facts_of(session, CallEnded)}
    read, found, whole = (ended[call] for call in ("call_0_0", "call_2_0", "call_2_1"))
    rows = json.loads(found.content)
    assert rows == [{"turn": 1, "kind": "result", "tool": "read_file", "call": "call_0_0", "text": read.content}]
    assert (whole.content, [source.kind for source in whole.sources]) == (read.content, ["file"])
