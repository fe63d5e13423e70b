"""Several clients on one session: whoever comes, whenever, sees the same, once, in the same order."""

import json
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from supervisor.acp import extensions
from supervisor.journal.facts import TurnEnded
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.messages_server import MessagesServer, reply, start, text_block
from tests.supervisor.command import wait_until
from tests.supervisor.histories import ASKING, call

READ: Final = ("read_file", {"path": "a.txt"})
LONG: Final = [f"{number} " for number in range(80)]


def pieces(client: Lines, session: str, message: str) -> int:
    return sum(update.get("messageId") == message for update in client.updates(session))


def hear(client: Lines, session: str, message: str, count: int) -> None:
    """Wait until a client was told so many pieces of a message."""
    while pieces(client, session, message) < count:
        client.heard.append(client.read())


def up_to_now(client: Lines, session: str) -> None:
    """Wait until a client has heard everything of a session that is at rest."""
    assert client.request(extensions.CONTINUE_METHOD, {"sessionId": session}) is None


def has_ended(daemon: DaemonProcess, session: str) -> bool:
    return any(isinstance(fact, TurnEnded) for fact in daemon.sessions[session])


def shared(client: Lines, session: str) -> list[dict[str, Any]]:
    """Return the updates that everybody gets: not what a client said itself, nor the welcome, nor what ours are told
    otherwise.
    """
    own = ("user_message_chunk", "available_commands_update", "notice")
    return [update for update in client.updates(session) if update["sessionUpdate"] not in own]


def test_all_clients_of_a_session_hear_the_same_in_the_same_order(
    daemon: DaemonProcess, tmp_path: Path, root: Path
) -> None:
    daemon.configure(ASKING)
    model = scripted(
        tmp_path / "script.jsonl",
        {"text": "Many.", "calls": [call("read_file", path=f"{number}.txt") for number in range(20)]},
        {"fault": "overloaded", "times": 2, "text": "One.", "calls": [call("write_file", path="b.txt", content="x")]},
        {"text": "Done."},
    )
    with ExitStack() as stack:
        stack.enter_context(daemon)
        asker, other = (stack.enter_context(daemon.client()) for _ in range(2))
        own = stack.enter_context(daemon.client(_meta={extensions.CLIENT: True}))
        session = asker.new_session(root, model=model, profile="asking")
        for client in (other, own):
            client.load(session)
        prompt = asker.begin_prompt(session, "go")
        for client in (asker, other, own):
            asked = client.until("session/request_permission")
        own.allow(asked)
        assert asker.answer(prompt)["result"]["stopReason"] == "end_turn"
        for client in (other, own):
            up_to_now(client, session)
            assert shared(client, session) == shared(asker, session)
            assert list(client.messages(session).values()) == ["go", "Many.", "One.", "Done."]
        withdrawn = asker.until("$/cancel_request")["params"]["requestId"]
        assert withdrawn == other.until("$/cancel_request")["params"]["requestId"]
        kinds = Counter(update["sessionUpdate"] for update in shared(own, session))
        assert kinds["tool_call"] == 21
        assert not any(each.get("method") == extensions.TURN_STATE for each in [*asker.heard, *other.heard])
        assert any(each.get("method") == extensions.TURN_STATE for each in own.heard)


def test_a_client_that_comes_in_the_middle_misses_nothing_and_hears_nothing_twice(
    home: Path, tmp_path: Path, root: Path
) -> None:
    long = {"sse": reply(LONG, [READ]), "gap": 0.01}
    cut = {"sse": start() + text_block(0, "Do"), "then": "reset"}
    with MessagesServer([reply("I look. ", [READ]), long, cut, reply("Done.")]) as server:
        environment = {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": server.url}
        with DaemonProcess(home, tmp_path, **environment) as daemon, daemon.client() as asker:
            session = asker.new_session(root, model="claude-test")
            prompt = asker.begin_prompt(session, "go")
            comers = [daemon.client() for _ in range(4)]
            for number, comer in enumerate(comers):
                hear(asker, session, "turn-1-step-1", 1 + 18 * number)
                comer.load(session)
            assert asker.answer(prompt)["result"]["stopReason"] == "end_turn"
            whole = {"turn-1-step-0": "I look. ", "turn-1-step-1": "".join(LONG)}
            assert asker.messages(session) == {**whole, "turn-1-step-2": "Do", "turn-1-step-2-2": "Done."}
            for comer in comers:
                up_to_now(comer, session)
                assert comer.messages(session) == {"turn-1": "go", **asker.messages(session)}
                calls = Counter(each["toolCallId"] for each in comer.updates(session) if "toolCallId" in each)
                assert set(calls.values()) == {2}
                comer.close()
            assert any(1 < pieces(comer, session, "turn-1-step-1") < len(LONG) for comer in comers)
            with daemon.client() as late:
                late.load(session)
                assert late.messages(session) == {"turn-1": "go", **asker.messages(session)}


def test_what_clients_had_been_told_as_the_daemon_was_killed_is_in_the_conversation_once(
    home: Path, tmp_path: Path, root: Path
) -> None:
    with MessagesServer() as server:
        environment = {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": server.url}
        daemon, killed = DaemonProcess(home, tmp_path, **environment), dict[str, str]()
        daemon.start()
        with daemon.client() as client:
            for count in (1, 7, 40):  # each stream is cut somewhere behind its piece of that number
                server.add({"sse": reply(LONG), "gap": 0.01})
                session = client.new_session(root, model="claude-test")
                client.begin_prompt(session, "go")
                hear(client, session, "turn-1-step-0", count)
                killed[session] = ""
            daemon.kill()
            with suppress(EOFError):
                while True:
                    client.heard.append(client.read())
            killed |= {session: client.messages(session)["turn-1-step-0"] for session in killed}
        daemon.wait()
        server.add(*[reply("Anew.")] * len(killed))
        with daemon, daemon.client() as client:
            for session, told in killed.items():
                wait_until(partial(has_ended, daemon, session), lambda: daemon.log)
                client.load(session)
                assert list(client.messages(session)) == ["turn-1", "turn-1-step-0", "turn-1-step-0-2"]
                kept = client.messages(session)["turn-1-step-0"]
                assert "".join(LONG).startswith(kept)
                assert kept.startswith(told)
        assert json.dumps(server.bodies).count("This reply was cut here: interrupted.") == len(killed)
