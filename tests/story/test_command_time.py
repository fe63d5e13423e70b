"""A long command in the daemon: watched while it runs, and cancelled; what it printed until then is not lost."""

from pathlib import Path
from typing import Final

from tests.daemon_process import ASK, DaemonProcess, Lines, scripted
from tests.forked import ForkedStrongroom

LONG: Final = {
    "command": "printf 'begun \\303'; sleep 0.2; printf '\\244\\n'; touch made; sleep 1000",
    "timeout_s": 500,
}


def printed(client: Lines, session: str) -> str:
    """Return what a running call is shown to have printed, as of its last update."""
    shown = [update for update in client.updates(session) if update["sessionUpdate"] == "tool_call_update"]
    texts = [part["content"]["text"] for update in shown for part in update.get("content") or () if "content" in part]
    return texts[-1] if texts else ""


def test_a_command_is_watched_and_after_a_cancel_its_output_is_kept(
    daemon: DaemonProcess, home: Path, root: Path
) -> None:
    home.mkdir()
    model = scripted(home / "model", {"text": "", "calls": [{"tool": "run_cmd", "arguments": LONG}]})
    with daemon, daemon.client() as client:
        session = client.new_session(root, profile="operator", model=model)
        turn = client.begin_prompt(session, "go")
        client.allow(client.until(ASK))
        while "begun ä\n" not in printed(client, session):
            client.heard.append(client.read())
        client.notify("session/cancel", {"sessionId": session})
        assert client.result(turn)["stopReason"] == "cancelled"
        told = ForkedStrongroom(home, root).run("history", session, "--format", "json").json
    (end,) = [row["fact"] for row in told if row["fact"]["fact"] == "CallEnded"]
    assert end["details"] == {"output": "begun ä\n"}
    assert end["seconds"] > 0
    assert "s after it began." in end["content"]
    assert not (root / "made").exists()
