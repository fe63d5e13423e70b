"""A person may let one command run unconfined, where the configuration offers it, and nobody else can."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallDecided
from tests.daemon_process import ASK, DaemonProcess

OURS: Final = {"_meta": {"_strongroom/client": True}}


@pytest.fixture(scope="module", params=[True, False], ids=["on", "off"])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """A daemon whose configuration offers it, and one that has the default."""
    folder = tmp_path_factory.mktemp("escalation")
    running = DaemonProcess(folder / "home", folder)
    running.configure("[shell]\nescalation = true\n" if request.param else "")
    with running:
        yield running


def offers(daemon: DaemonProcess) -> bool:
    return "escalation" in (daemon.home / "config.toml").read_text()


@pytest.mark.parametrize("capabilities", [OURS, {}], ids=["ours", "another's"])
def test_only_our_own_client_can_say_it_and_only_where_it_is_offered(
    capabilities: dict[str, Any], daemon: DaemonProcess, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    with daemon.client(**capabilities) as client:
        session = client.new_session(root, profile="project", model="offline")
        number = client.begin_tool(session, "exec_shell", command="touch", args=["inside", str(outside)])
        asked = client.until(ASK)
        client.choose(asked, "allow_once", **{"_strongroom/unconfined": True})
        answer = client.answer(number)["result"]["answer"]
    may = offers(daemon) and capabilities == OURS
    assert asked["params"]["_meta"]["_strongroom/review"].get("escalation", False) == offers(daemon)
    assert outside.exists() == may
    (decided,) = daemon.facts_of(session, CallDecided)
    assert decided.unconfined == may
    assert ("ran unconfined" in answer.get("note", "")) == may
