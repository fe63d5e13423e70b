"""Sessions of a real daemon, replayed: rules that stood before, a turn that was let go on, and what a network said."""

import json
from pathlib import Path
from typing import Any

from supervisor.journal.facts import CallDecided
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import Done
from tests.supervisor.histories import call


def replayed(daemon: DaemonProcess, session: str, *options: str) -> Done:
    return ForkedStrongroom(daemon.home, daemon.folder).run("replay", session, *options)


def opened(client: Lines, root: Path, *replies: dict[str, Any], profile: str = "code") -> str:
    model = scripted(root.parent / f"{len(replies)}-{profile}.jsonl", *replies)
    return client.new_session(root, profile=profile, model=model, root=str(root))


def test_rules_that_a_person_had_made_before_hold_in_a_replay(daemon: DaemonProcess, root: Path) -> None:
    remove = call("exec_shell", command="rm", args=["a.txt"])
    with daemon.client() as client:
        first = opened(client, root, {"calls": [remove]}, {"text": "gone"}, profile="project")
        number = client.begin_prompt(first, "go")
        client.choose(client.until("session/request_permission"), "allow_always")
        client.answer(number)
        (root / "a.txt").write_text("again\n")
        second = opened(client, root, {"calls": [remove]}, {"text": "gone"}, profile="project")
        client.prompt(second, "go")
    (decided,) = daemon.facts_of(second, CallDecided)
    assert (decided.decision, decided.committed) == ("allow", True)
    assert replayed(daemon, second).out.startswith("equal: 1 turns, 1 calls")


def test_a_turn_that_went_round_and_was_let_go_on_comes_to_the_same(daemon: DaemonProcess, root: Path) -> None:
    with daemon.client() as client:
        session = opened(client, root, *[{"calls": [call("read_file", path="a.txt")]}] * 12, {"text": "at last"})
        client.prompt(session, "go")
        client.prompt(session, "/go")
    done = replayed(daemon, session)
    assert done.out.startswith("equal: 1 turns"), done.out


def test_what_a_network_said_is_given_as_it_was(daemon: DaemonProcess, root: Path) -> None:
    fetch = call("fetch_url", url="https://127.0.0.1:1/")
    with daemon.client() as client:
        session = opened(client, root, {"calls": [fetch]}, {"text": "read"}, profile="vault")
        client.prompt(session, "go")
    history = ForkedStrongroom(daemon.home, daemon.folder).run("history", session, "--format", "json").json
    for row in history:
        if row["fact"]["fact"] == "CallEnded":
            row["fact"] = {key: row["fact"][key] for key in ("fact", "turn", "call", "tool")}
            row["fact"] |= {"ok": True, "content": "a page that is not there any more"}
    (day := root.parent / "day.json").write_text(json.dumps(history))
    done = replayed(daemon, str(day), "--root", str(root))
    assert done.out, done.err
    assert done.out.splitlines()[0] == "equal: 1 turns, 1 calls"
    assert "1 outcomes came from outside" in done.out
