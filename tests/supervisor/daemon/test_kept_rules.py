"""Rules that instructions state: offered, kept by a person, and then held whatever the model does."""

from hashlib import sha256
from pathlib import Path

from supervisor.acp import extensions
from supervisor.journal.facts import CallEnded, InstructionsRead
from tests.daemon_process import DaemonProcess, Lines, scripted

WRITE = {"calls": [{"tool": "write_file", "arguments": {"path": "migrations/1.sql", "content": "x"}}]}
SAID = "# Rules\n- Never change `migrations/`.\n- Be brief.\n"


def rules(client: Lines, session: str, **asked: str) -> list[str]:
    return list(client.request(extensions.RULES_METHOD, {"sessionId": session, **asked})["lines"])


def test_a_rule_that_is_kept_holds_and_can_be_revoked(daemon: DaemonProcess, client: Lines, tmp_path: Path) -> None:
    root = daemon.folder / "stated"
    (root / "migrations").mkdir(parents=True)
    (root / "AGENTS.md").write_text(SAID)
    done = {"text": "done"}
    model = scripted(tmp_path / "s.jsonl", done, WRITE, done, WRITE, done, WRITE, done)
    session = client.new_session(root, profile="code", model=model)
    assert not any(line.startswith("offered") for line in rules(client, session))
    client.prompt(session, "hello")
    (status,) = [each for each in client.status()["sessions"] if each["sessionId"] == session]
    assert status["instructions"] == [f"AGENTS.md, {len(SAID)} bytes, sha256 {sha256(SAID.encode()).hexdigest()[:12]}"]
    (read,) = daemon.facts_of(session, InstructionsRead)
    assert read.files[0].text == SAID
    offered = "offered, `/rules keep 1`: no program may add or change migrations/, or delete migrations/, as "
    (line,) = [line for line in rules(client, session) if line.startswith("offered")]
    assert line == f"{offered}AGENTS.md says: Never change `migrations/`"
    client.prompt(session, "write")
    for keep in ("2", "2" * 5000):
        refused = client.refused(extensions.RULES_METHOD, {"sessionId": session, "keep": keep})
        assert refused["message"] == f"No rule '{keep[:20]}' is offered here. /rules lists those that are."
    assert rules(client, session, keep="1")[0].startswith("kept: no program may add or change migrations/")
    (root / "migrations/1.sql").unlink()
    client.prompt(session, "write again")
    assert not (root / "migrations/1.sql").exists()
    (kept,) = [line for line in rules(client, session) if "AGENTS.md says" in line]
    assert ", for this profile and root: no program may add or change migrations/" in kept
    rules(client, session, revoke="1")
    client.prompt(session, "write once more")
    assert (root / "migrations/1.sql").exists()
    assert [end.ok for end in daemon.facts_of(session, CallEnded)] == [True, False, True]
