"""A librarian is told where it is each time that it is asked anything, whatever has happened in between.

The model is a server of the Messages API, which sees what it is told; the daemon, its workers and the journal are real.
"""

import json
import re
import signal
import subprocess
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallEnded, SessionOpened, TurnResumed
from tests.daemon_process import DaemonProcess
from tests.messages_server import Call, MessagesServer, reply
from tests.script_server import Recorded, Response
from tests.story.test_daemon_crash import at_rest
from tests.supervisor.command import HANG_GUARD, finished
from tests.supervisor.histories import fault_in_facts
from tests.supervisor.repositories import FIRST, NAMES, SECOND, Repos

ASK: Final = reply(calls=[("read_file", {"path": "guide.md"})])
TOOLS: Final = ("read_file", "list_directory", "search_files", "find_files", "recall")
SAY: Final = reply("That is all.")
SILENCE: Final[Response] = {"sse": "", "then": "hang"}


@pytest.fixture
def repos(tmp_path: Path) -> Repos:
    return Repos(tmp_path)


def context_in(body: Any) -> Any:
    """Return what a request to the model says of where the agent is."""
    (block,) = body["system"] if isinstance(body["system"], list) else [{"text": body["system"]}]
    found = re.search(r"# Where you are\n(\{.*?\n\})\n", block["text"], re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def contexts(server: MessagesServer) -> list[Any]:
    assert [request.refused for request in server.requests] == [None] * len(server.requests)
    return [context_in(body) for body in server.bodies]


def tools_in(body: Any) -> list[str]:
    return [tool["name"] for tool in body["tools"]]


def test_every_request_of_every_turn_says_where_the_agent_is(repos: Repos) -> None:
    """Of two turns, of a third after the session was taken up again, of a killed one, and of the one after it."""
    with MessagesServer([ASK, ASK, SAY, ASK, SAY, ASK, SAY, ASK, SILENCE]) as server:
        daemon = DaemonProcess(repos.home, repos.work, ANTHROPIC_BASE_URL=server.url)
        daemon.start()
        with daemon.client() as client:
            session = client.new_session(repos.work, **NAMES, model="m", environment="live")
            client.prompt(session, "first")
            client.prompt(session, "second")
            client.request("session/close", {"sessionId": session})
            client.resume(session)
            client.prompt(session, "third")
            assert len(server.requests) == 7
            client.begin_prompt(session, "fourth")
            while len(server.requests) < 9:
                client.status()
            daemon.crash()
        repos.configure(environment="another")
        server.add(SAY, ASK, SAY)
        with daemon, daemon.client() as client:
            at_rest(client, session)
            client.load(session)
            client.prompt(session, "fifth")
        assert contexts(server) == [repos.context(environment="live")] * 12
        assert {tuple(tools_in(body)) for body in server.bodies} == {TOOLS}
    facts = daemon.sessions[session]
    assert fault_in_facts(facts) is None
    assert [type(fact) for fact in facts].count(TurnResumed) == 1
    assert [fact.content for fact in facts if isinstance(fact, CallEnded)] == ["All about phoenix.\n"] * 6


def test_two_librarians_at_once_are_each_told_of_their_own(repos: Repos) -> None:
    """Both turns are under way at the same time: the model answers nobody before it has been asked by both."""
    both = threading.Barrier(2, timeout=HANG_GUARD)

    def meet(request: Recorded) -> None:
        if len(request.body["messages"]) == 1:
            both.wait()

    up = [("read_file", {"path": f"../{name}/guide.md"}) for name in (FIRST, SECOND)]
    away = [("list_directory", {"path": "beside"}), ("read_file", {"path": "absolute/guide.md"})]
    found: list[Call] = [
        ("find_files", {"pattern": "**/*.md"}),
        ("search_files", {"query": "All about", "literal": True}),
    ]
    ask = reply(calls=[("read_file", {"path": "guide.md"}), *found, *up, *away])
    server = MessagesServer([ask, ask, SAY, SAY], on_request=meet)
    with (
        server,
        DaemonProcess(repos.home, repos.work, ANTHROPIC_BASE_URL=server.url) as daemon,
        daemon.client() as client,
    ):
        sessions = {
            name: client.new_session(repos.work, **{**NAMES, "technology": name}, model="m") for name in (FIRST, SECOND)
        }
        begun = [client.begin_prompt(session, "go") for session in sessions.values()]
        assert all("result" in client.answer(number) for number in begun)
    for name, other in ((FIRST, SECOND), (SECOND, FIRST)):
        own = [body for body in server.bodies if context_in(body)["technology"] == name]
        assert [context_in(body) for body in own] == [repos.context(name)] * 2
        ended = [fact for fact in daemon.sessions[sessions[name]] if isinstance(fact, CallEnded)]
        assert sorted(str(fact.kind) for fact in ended) == [*["None"] * 3, *["path_escape"] * 4]
        contents = {fact.tool: fact.content for fact in ended if fact.ok}
        assert contents["read_file"] == f"All about {name}.\n"
        assert json.loads(contents["find_files"]) == ["guide.md", f"only-{name}.md"]
        assert json.loads(contents["search_files"]) == [{"path": "guide.md", "line": 1, "text": f"All about {name}."}]
        assert f"All about {other}" not in json.dumps(own)


def test_a_batch_that_was_killed_goes_on_in_the_same_repositories(repos: Repos) -> None:
    items = [
        {"id": name, "prompt": "go", "profile": "librarian", "group": "elixir", "technology": name}
        for name in (FIRST, SECOND)
    ]
    strongroom = repos.strongroom()
    arguments = strongroom.batch_of("\n".join(map(json.dumps, items)), "--resume", model="m", root="")

    def kill(_request: Recorded) -> None:
        if len(server.requests) == 4:
            begun.get().send_signal(signal.SIGKILL)

    begun: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    with MessagesServer([ASK, SAY, ASK, SILENCE], on_request=kill) as server:
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        begun.put(process := strongroom.start(*arguments))
        assert finished(process).code == -signal.SIGKILL
        server.add(SAY)
        assert strongroom.run(*arguments).code == 0
        assert contexts(server) == [repos.context(name) for name in (FIRST, FIRST, SECOND, SECOND, SECOND)]
    assert [(each["id"], each["status"]) for each in strongroom.results] == [(FIRST, "ok"), (SECOND, "ok")]
    opened = [fact.context.technology for fact in strongroom.facts if isinstance(fact, SessionOpened)]
    assert opened == [FIRST, SECOND]
    contents = [fact.content for fact in strongroom.facts if isinstance(fact, CallEnded)]
    assert contents == ["All about phoenix.\n", "All about ecto.\n"]
