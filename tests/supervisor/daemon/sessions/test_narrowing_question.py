"""`.strongroom.toml` of a root counts until the person, who is asked once a content, leaves it out."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from supervisor.acp import extensions
from supervisor.config.narrowing import NAME
from tests.daemon_process import ASK, DaemonProcess, Lines


@pytest.fixture
def narrow(daemon: DaemonProcess, request: pytest.FixtureRequest) -> Path:
    root: Path = daemon.folder / request.node.name
    root.mkdir()
    (root / NAME).write_text(f"# {request.node.name}\ntools = ['read_file']\nmax_steps = 3\n")
    return root


def asked(client: Lines, root: Path) -> tuple[str, dict[str, Any]]:
    """Open a session there; return it, and what is asked."""
    session = client.new_session(root, profile="vault", model="offline", origin="console")
    return session, client.until(ASK)


def settled(client: Lines, question: dict[str, Any], option: str) -> str:
    """Choose an option; return how the question ends."""
    client.choose(question, option)
    call = question["params"]["toolCall"]["toolCallId"]
    while True:
        told = client.until("session/update")["params"]["update"]
        if told.get("toolCallId") == call and told["status"] != "pending":
            return str(told["status"])


def narrowed_by(client: Lines, session: str) -> str:
    found = client.status()["sessions"]
    return next(str(each["narrowedBy"]) for each in found if each["sessionId"] == session)


def waiting(client: Lines, session: str) -> bool:
    found = client.request(extensions.INBOX_METHOD, {})["questions"]
    return any(each["asked"]["sessionId"] == session for each in found)


def tools(client: Lines, session: str, root: Path) -> list[str]:
    opened = client.request("session/resume", {"sessionId": session, "cwd": str(root), "mcpServers": []})
    return list(opened["_meta"][extensions.OPTIONS]["tools"])


def test_a_yes_leaves_it_out_here_and_later_until_it_changes(
    daemon: DaemonProcess, client: Lines, narrow: Path
) -> None:
    session, question = asked(client, narrow)
    said = question["params"]["_meta"][extensions.REVIEW]
    assert (said["stage"], said["reason"].partition(" ")[0]) == ("narrow", f"{narrow}/{NAME}")
    assert "its tools are read_file; a turn has 3 steps at most" in said["reason"]
    assert tools(client, session, narrow) == ["read_file"]  # it counts until somebody says otherwise
    assert settled(client, question, "allow_once") == "completed"
    assert "write_file" in tools(client, session, narrow)
    assert narrowed_by(client, session) == f"{narrow}/{NAME}: not used, as you decided"
    kept = daemon.home / "narrowings.json"
    assert [each["use"] for each in json.loads(kept.read_bytes()).values()] == [False]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = client.new_session(narrow, profile="vault", model="offline", origin="console")
    assert "write_file" in tools(client, again, narrow)
    (narrow / NAME).write_text("tools = ['read_file', 'list_directory']\n")
    assert "its tools are" in asked(client, narrow)[1]["params"]["_meta"][extensions.REVIEW]["reason"]


def test_a_no_lets_it_count_and_nobody_is_asked_again(client: Lines, narrow: Path) -> None:
    session, question = asked(client, narrow)
    assert waiting(client, session)
    assert settled(client, question, "reject_once") == "completed"
    again = client.new_session(narrow, profile="vault", model="offline", origin="console")
    assert tools(client, session, narrow) == tools(client, again, narrow) == ["read_file"]
    assert narrowed_by(client, again).startswith(f"{narrow}/{NAME}: its tools are read_file")
    assert not waiting(client, again)


@pytest.mark.parametrize("options", [{"attended": False, "origin": "console"}, {"origin": "prompt"}])
def test_it_counts_where_nobody_can_be_asked(options: dict[str, Any], client: Lines, narrow: Path) -> None:
    session = client.new_session(narrow, profile="vault", model="offline", **options)
    assert tools(client, session, narrow) == ["read_file"]
    assert not waiting(client, session)


def test_one_who_leaves_without_an_answer_has_said_nothing(daemon: DaemonProcess, narrow: Path) -> None:
    with daemon.client() as client:
        session, question = asked(client, narrow)
        client.reply(question, {"outcome": {"outcome": "cancelled"}})
    with daemon.client() as client:
        again, question = asked(client, narrow)
        assert question["params"]["_meta"][extensions.REVIEW]["stage"] == "narrow"
        assert tools(client, session, narrow) == tools(client, again, narrow) == ["read_file"]
