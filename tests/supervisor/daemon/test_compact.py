"""A person compacts a conversation in the real daemon, and it goes on after a crash as it did before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp import extensions
from supervisor.journal.facts import Compacted
from tests.daemon_process import DaemonProcess
from tests.messages_server import MessagesServer, reply

LINES: Final = ["Never change migrations/.", "What is in the greenhouse?"]
SUMMARY: Final = "The roof of the greenhouse leaks."


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    long = [reply(f"answer {number}: " + "leaf, lamp, frost. " * 400) for number in range(len(LINES))]
    with MessagesServer([*long, reply(SUMMARY)], repeat_last=True) as server:
        yield server


@pytest.fixture
def daemon(home: Path, tmp_path: Path, server: MessagesServer) -> Iterator[DaemonProcess]:
    with DaemonProcess(home, tmp_path, ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=server.url) as daemon:
        yield daemon


def test_a_conversation_is_compacted_by_command_and_by_method_and_survives_a_crash(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    with daemon.client() as client:
        session = client.new_session(root, model="claude-haiku-5-5")
        assert client.request("_strongroom/compact", {"sessionId": session})["compacted"] is False
        for line in LINES:
            client.prompt(session, line)
        client.prompt(session, "/compact the tests")
        *_, notice, usage, told = client.updates(session)
        done = notice["_meta"][extensions.COMPACTION]
        assert (done["because"], done["summary"], done["model"]) == ("asked", SUMMARY, "claude-haiku-5-5")
        assert usage["used"] == done["after"] < done["before"]
        assert told["content"]["text"].splitlines()[-1] == SUMMARY
        asked = server.requests[-1].body
        assert "tools" not in asked or not asked["tools"]
        assert "keep in mind: the tests" in asked["messages"][0]["content"][0]["text"]
    with daemon.client(session={"compaction": {}}) as editor:
        editor.load(session)
        (shown,) = (each for each in editor.updates(session) if each["sessionUpdate"] == "compaction_update")
        assert (shown["compactionId"], shown["status"]) == (notice["messageId"], "completed")
        assert shown["summary"] == [{"type": "text", "text": SUMMARY}]
        assert notice not in editor.updates(session)
    daemon.crash()
    daemon.start()
    with daemon.client() as client:
        client.load(session)
        assert notice in client.updates(session)
        client.prompt(session, "go on")
        [sent, *_] = server.requests[-1].body["messages"]
        texts = [block["text"] for block in sent["content"]]
        assert [text for text in texts if text in LINES] == LINES
        assert any(SUMMARY in text and "not the person's word" in text for text in texts)
        assert all(request.refused is None for request in server.requests)
    assert [fact.by for fact in daemon.facts_of(session, Compacted)] == ["a client"]
