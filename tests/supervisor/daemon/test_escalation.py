"""A person may let one command run unconfined, where the configuration offers it, and nobody else can."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallDecided
from tests.daemon_process import DaemonProcess

OURS: Final = {"_meta": {"_strongroom/client": True}}
ASK: Final = "session/request_permission"


@pytest.fixture(scope="module", params=[True, False], ids=["on", "off"])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """A daemon whose configuration offers it, and one that has the default."""
    folder = tmp_path_factory.mktemp("escalation")
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[shell]\nescalation = true\n" if request.param else "")
    with DaemonProcess(home, folder) as running:
        yield running


def offers(daemon: DaemonProcess) -> bool:
    return "escalation" in (daemon.home / "config.toml").read_text()


@pytest.mark.parametrize("capabilities", [OURS, {}], ids=["ours", "another's"])
def test_only_our_own_client_can_say_it_and_only_where_it_is_offered(
    capabilities: dict[str, Any], daemon: DaemonProcess, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    arguments = json.dumps({"command": "touch", "args": ["inside", str(outside)]})
    with daemon.client(**capabilities) as client:
        session = client.new_session(root, profile="project", model="offline")
        params = {"sessionId": session, "tool": "exec_shell", "arguments": arguments}
        number = client.begin("_strongroom/call", params)
        asked = client.until(ASK)
        chosen = {"outcome": "selected", "optionId": "allow_once"}
        client.reply(asked, {"outcome": chosen, "_meta": {"_strongroom/unconfined": True}})
        answer = client.answer(number)["result"]["answer"]
    may = offers(daemon) and capabilities == OURS
    assert asked["params"]["_meta"]["_strongroom/review"].get("escalation", False) == offers(daemon)
    assert outside.exists() == may
    (decided,) = [fact for fact in daemon.sessions[session] if isinstance(fact, CallDecided)]
    assert decided.unconfined == may
    assert ("ran unconfined" in answer.get("note", "")) == may
