"""The daemon is killed in the middle of a turn, and the next one goes on with it by itself.

Whatever the instant: nothing that was recorded is lost, no effect happens twice, what was only rehearsed is begun anew,
what was to be committed and has no end is said to be unknown, the journal is whole, the history is valid, no process is
left, and whoever loads the session sees all of it.
"""

import os
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, TurnEnded, TurnResumed, TurnStarted
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.messages_server import MessagesServer, reply, start, text_block
from tests.supervisor.command import last_family, wait_until
from tests.supervisor.histories import ASKING, MARK, call, fault_in_facts

APPENDS: Final = 10
"""How often the session below writes to the journal when nobody disturbs it: it opens, is asked, replies..."""
HELD: Final = 4
"""The one that says that the mark is committed: until then it is only rehearsed."""
TEXTS: Final = ["I mark.", "I write and read.", "All done."]
DONE: Final = {"text": "All done."}
ASK: Final = "session/request_permission"


@pytest.fixture
def model(tmp_path: Path, root: Path) -> str:
    (root / "log.txt").write_text("begin|end")
    calls = [call("write_file", path="two.txt", content="two"), call("read_file", path="log.txt")]
    return scripted(
        tmp_path / "script.jsonl",
        {"text": TEXTS[0], "calls": [MARK]},
        {"text": TEXTS[1], "calls": calls},
        {"text": TEXTS[2]},
        {"text": "Another turn."},
    )


def dying(when: str, number: int) -> str:
    """Return a patch that dies before or after that write to the journal, or when the model begins to talk."""
    return f"from tests.supervisor.dying import prepare_daemon\nprepare_daemon({when!r}, {number}, alone=True)\n"


def begin(client: Lines, root: Path, model: str, **options: Any) -> str:
    """Open a session and ask something in it; return its id."""
    session = client.new_session(root, model=model, **options)
    client.begin_prompt(session, "do it")
    return session


def killed_at(daemon: DaemonProcess, when: str, number: int, root: Path, model: str, **options: Any) -> str:
    """Have it die in a turn, as in `dying`; return the session. It is not to die when it is started again."""
    daemon.patch = dying(when, number)
    daemon.start()
    with daemon.client() as client:
        session = begin(client, root, model, **options)
        with pytest.raises((EOFError, ConnectionResetError)):
            client.until("nothing")
        assert daemon.wait() == -signal.SIGKILL
    daemon.patch = ""
    return session


def at_rest(client: Lines, session: str) -> None:
    """Wait until the daemon has taken the session up by itself, and its turn has ended."""

    def taken_up() -> bool:
        sessions = client.status()["sessions"]
        return any(each["sessionId"] == session and each["state"] == "Input" for each in sessions)

    wait_until(taken_up, client.status)


def shown(client: Lines, session: str) -> tuple[list[str], dict[str, str]]:
    """Load a session; return what was said, and how each call ended."""
    client.load(session)
    updates = client.updates(session)
    said = [each["content"]["text"] for each in updates if each["sessionUpdate"].endswith("message_chunk")]
    calls = {each["toolCallId"]: each["status"] for each in updates if "toolCallId" in each and "status" in each}
    return said, calls


def in_doubt(facts: Sequence[Fact]) -> set[str]:
    """Return the tools whose call was to be committed, and has no end."""
    decided = {fact.call for fact in facts if isinstance(fact, CallDecided) and fact.committed}
    ended = {fact.call for fact in facts if isinstance(fact, CallEnded)}
    return {fact.tool for fact in facts if isinstance(fact, CallStarted) and fact.call in decided - ended}


def assert_nothing_is_lost_or_doubled(
    daemon: DaemonProcess, session: str, root: Path, before: Sequence[Fact] = ()
) -> None:
    """Judge a session at rest; `before` is what a killed daemon had recorded of it."""
    facts = daemon.sessions[session]
    assert list(before) == facts[: len(before)]
    assert fault_in_facts(facts) is None
    assert [fact.text for fact in facts if isinstance(fact, TurnStarted)] == ["do it"]
    assert [fact.status for fact in facts if isinstance(fact, TurnEnded)] == ["ok"]
    ended = {fact.tool: fact for fact in facts if isinstance(fact, CallEnded)}
    assert {fact.tool for fact in ended.values() if not fact.ok} - {"read_file"} <= in_doubt(before)
    of_changes = {fact.kind for fact in ended.values() if fact.tool != "read_file"}
    assert of_changes <= {None, "worker_crashed"}  # what was in doubt was settled
    assert (root / "log.txt").read_text().count("|one") == ended["edit_file"].ok
    assert (root / "two.txt").exists() == ended["write_file"].ok
    assert daemon.verdict.problem == ""
    decided = {fact.kept for fact in facts if isinstance(fact, CallDecided)}
    assert {path.name for path in (daemon.home / "kept").glob("*.*")} <= decided


INSTANTS: Final = [
    *(("after", number) for number in range(2, APPENDS)),
    *(("before", number) for number in (HELD, HELD + 1, 9)),
    ("text", 0),
]
"""After each fact but the last; before those that follow an act: a rehearsal, a commit; and while the model talks."""


@pytest.mark.parametrize(("when", "number"), INSTANTS)
def test_a_turn_that_was_killed_at_a_fact_is_finished_by_the_next_daemon(
    daemon: DaemonProcess, root: Path, model: str, when: str, number: int
) -> None:
    session = killed_at(daemon, when, number, root, model)
    assert last_family(daemon.errors).is_gone()
    before = daemon.sessions[session]
    with daemon, daemon.client() as client:
        at_rest(client, session)
        said, calls = shown(client, session)
        cut = said[1 : -len(TEXTS)]
        assert [said[0], *said[1 + len(cut) :]] == ["do it", *TEXTS]
        assert [TEXTS[0].startswith(each) for each in cut] == [True] * (when == "text")
        assert set(calls.values()) <= {"completed", "failed"}
        assert len(calls) == 3
    assert_nothing_is_lost_or_doubled(daemon, session, root, before)
    if "edit_file" in in_doubt(before):
        assert (root / "log.txt").read_text().count("|one") == 1  # it was committed, or is now under the same decision


def test_undisturbed_it_writes_so_often(daemon: DaemonProcess, root: Path, model: str) -> None:
    daemon.patch = dying("before", APPENDS + 1)
    with daemon, daemon.client() as client:
        session = client.new_session(root, model=model)
        assert client.prompt(session, "do it")["stopReason"] == "end_turn"
        with pytest.raises((EOFError, ConnectionResetError)):
            client.prompt(session, "more")
        assert daemon.wait() == -signal.SIGKILL
    assert_nothing_is_lost_or_doubled(daemon, session, root)


def test_a_change_that_was_only_being_rehearsed_is_begun_anew_and_made_once(
    daemon: DaemonProcess, root: Path, model: str
) -> None:
    daemon.start()
    with daemon.client() as client:
        warm = client.new_session(root, model=model)
        client.hold_workers()
        session = begin(client, root, model)
        client.until_update(session, "tool_call")
        daemon.crash()
    before = daemon.sessions[session]
    with daemon, daemon.client() as client:
        at_rest(client, session)
    assert_nothing_is_lost_or_doubled(daemon, session, root, before)
    marks = [fact for fact in daemon.sessions[session] if isinstance(fact, CallStarted) and fact.tool == "edit_file"]
    assert [(fact.call, fact.again) for fact in marks] == [(marks[0].call, False), (marks[0].call, True)]
    assert (root / "log.txt").read_text() == "begin|one|end"
    assert len(daemon.sessions[warm]) == 1


def test_a_question_that_nobody_had_answered_is_no_yes_and_is_asked_again(
    daemon: DaemonProcess, root: Path, model: str
) -> None:
    daemon.configure(ASKING.replace("ask = ['write_file']", "ask = ['edit_file']"))
    daemon.start()
    with daemon.client() as client:
        session = begin(client, root, model, profile="asking")
        client.until(ASK)
        daemon.crash()
    with daemon, daemon.client() as client:
        client.load(session)
        asked = client.until(ASK)
        assert (root / "log.txt").read_text() == "begin|end"
        end = client.begin_waiting(session)
        client.allow(asked)
        assert client.ends_turn(end)
    assert_nothing_is_lost_or_doubled(daemon, session, root)


def test_a_question_about_effects_outlives_the_daemon_and_the_worker_that_holds_them(
    daemon: DaemonProcess, root: Path, tmp_path: Path
) -> None:
    (root / "log.txt").write_text("begin\n")
    append = ["log.txt", "-exec", "sh", "-c", "echo one >> log.txt", ";"]
    marking = scripted(tmp_path / "asks.jsonl", {"calls": [call("exec_shell", command="find", args=append)]}, DONE)
    daemon.start()
    with daemon.client() as client:
        session = begin(client, root, marking, profile="project")
        assert "lost with its worker" not in reason(client.until(ASK))
        daemon.crash()
    assert in_doubt(daemon.sessions[session]) == set()
    with daemon, daemon.client() as client:
        client.load(session)
        asked = client.until(ASK)  # rehearsed anew: the effects are those of the first time
        end_holders(client)
        client.allow(asked)
        lost = client.until(ASK)
        assert "lost with its worker" in reason(lost)
        assert changes(lost) == changes(asked)
        assert (root / "log.txt").read_text() == "begin\n"
        end = client.begin_waiting(session)
        client.allow(lost)
        assert client.ends_turn(end)
    facts = daemon.sessions[session]
    assert fault_in_facts(facts) is None
    assert [fact.again for fact in facts if isinstance(fact, CallStarted)] == [False, True, True]
    assert [(fact.approved, fact.committed) for fact in facts if isinstance(fact, CallDecided)] == [(True, True)]
    assert [fact.ok for fact in facts if isinstance(fact, CallEnded)] == [True]
    assert (root / "log.txt").read_text() == "begin\none\n"


def reason(asked: dict[str, Any]) -> str:
    """Return why a question about effects is asked."""
    review = asked["params"]["_meta"][extensions.REVIEW]
    assert review["stage"] == "effects"
    return str(review["reason"])


def changes(asked: dict[str, Any]) -> Any:
    return asked["params"]["_meta"][extensions.REVIEW]["effects"]["changes"]


def end_holders(client: Lines) -> None:
    """Kill the shell workers that hold what they have rehearsed, and wait until the daemon knows."""

    def holders() -> list[int]:
        pools = client.status()["pools"]
        found = [worker for pool in pools if pool["category"] == "shell" for worker in pool["workers"]]
        return [worker["pid"] for worker in found if worker["state"] == "BUSY"]

    held = holders()
    assert held
    for pid in held:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not set(holders()) & set(held))


def uncached(message: Any) -> Any:
    """Return a message without the marks of what is to be cached."""
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in message["content"]]


def test_a_stream_that_the_crash_cut_is_asked_for_again_with_a_valid_history(
    home: Path, tmp_path: Path, root: Path
) -> None:
    (root / "log.txt").write_text("begin|end")
    edit = ("edit_file", {"path": "log.txt", "old": "|end", "new": "|one|end"})
    half = {"sse": start() + text_block(0, "All d"), "then": "hang"}
    with MessagesServer([reply("I mark.", [edit]), half, reply("All done.")]) as server:
        daemon = DaemonProcess(home, tmp_path, ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=server.url)
        daemon.start()
        with daemon.client() as client:
            session = begin(client, root, "claude-test")
            while "All d" not in client.messages(session).values():
                client.heard.append(client.read())
            daemon.crash()
        with daemon, daemon.client() as client:
            at_rest(client, session)
            said, calls = shown(client, session)
        assert said == ["do it", "I mark.", "All d", "All done."]
        assert list(calls.values()) == ["completed"]
        assert [request.refused for request in server.requests] == [None, None, None]
        before, after = (list(map(uncached, each.body["messages"])) for each in server.requests[1:])
        assert after[:-2] == before  # and then what was read, and that it goes on
    assert (root / "log.txt").read_text() == "begin|one|end"
    assert fault_in_facts(daemon.sessions[session]) is None


def test_a_turn_that_kills_the_daemon_time_and_again_is_given_up_and_the_session_goes_on(
    daemon: DaemonProcess, root: Path, model: str
) -> None:
    session = killed_at(daemon, "after", 3, root, model)
    daemon.patch = dying("after", 1)  # which says that it is taken up
    for times in range(1, 4):
        daemon.start()
        assert daemon.wait() == -signal.SIGKILL
        assert Counter(type(fact) for fact in daemon.sessions[session])[TurnResumed] == times
    daemon.patch = ""
    with daemon, daemon.client() as client:
        at_rest(client, session)
        assert client.prompt(session, "more")["stopReason"] == "end_turn"
    facts = daemon.sessions[session]
    assert fault_in_facts(facts) is None
    ends = [(fact.status, fact.kind) for fact in facts if isinstance(fact, TurnEnded)]
    assert ends == [("error", "interrupted"), ("ok", "")]
    assert Counter(type(fact) for fact in facts)[TurnResumed] == 3
    assert "closed an interrupted turn" in daemon.log


def test_every_session_but_those_of_batches_is_taken_up(daemon: DaemonProcess, root: Path, model: str) -> None:
    daemon.configure("[limits.files]\nworkers = 1\n")  # the one that is held: no other ends a turn before the crash
    daemon.start()
    with daemon.client() as client:
        client.new_session(root, model=model)
        client.hold_workers()
        ours_, batch = [
            [begin(client, root, model, origin=origin) for origin in origins]
            for origins in (("acp", "console"), ("batch:run:1", "batch:run:2"))
        ]
        for session in (*ours_, *batch):
            client.until_update(session, "tool_call")
        daemon.crash()
    with daemon, daemon.client() as client:
        for session in ours_:
            at_rest(client, session)
        assert {each["sessionId"] for each in client.status()["sessions"]} == set(ours_)
    for session in ours_:
        assert fault_in_facts(daemon.sessions[session]) is None
    for session in batch:
        kinds = Counter(type(fact) for fact in daemon.sessions[session])
        assert (kinds[TurnStarted], kinds[TurnResumed], kinds[TurnEnded]) == (1, 0, 0)


def test_a_turn_interrupted_too_long_ago_stays_as_it_is_until_somebody_asks(
    daemon: DaemonProcess, root: Path, model: str
) -> None:
    daemon.configure("[daemon]\nresume_within_h = 0\n")
    session = killed_at(daemon, "after", 3, root, model)
    with daemon, daemon.client() as client:
        said, _ = shown(client, session)
        assert said == ["do it", TEXTS[0]]
        end = client.request(extensions.CONTINUE_METHOD, {"sessionId": session})
        assert end["stopReason"] == "end_turn"
    assert_nothing_is_lost_or_doubled(daemon, session, root)


def test_the_daemon_that_goes_on_refuses_a_second_prompt_and_lets_clients_wait(
    daemon: DaemonProcess, root: Path, model: str, tmp_path: Path
) -> None:
    asking = scripted(tmp_path / "asks.jsonl", {"calls": [call("write_file", path="x", content="x")]}, DONE)
    daemon.configure(ASKING)
    # the line is recorded, the model not asked yet
    session = killed_at(daemon, "after", 2, root, asking, profile="asking")
    with daemon, daemon.client() as client:
        client.load(session)
        asked = client.until(ASK)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "more"}]}
        assert client.refused("session/prompt", prompt)["data"]["kind"] == "busy"
        end = client.begin_waiting(session)
        client.allow(asked)
        assert client.ends_turn(end)
    assert (root / "x").read_text() == "x"
    assert fault_in_facts(daemon.sessions[session]) is None
