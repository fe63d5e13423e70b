"""What Gemini has signed, through a conversation that other models go on with, and in the history."""

import json
from pathlib import Path
from typing import Any, Final

from supervisor.reports.history import history
from tests import gemini_server, messages_server, ollama_server
from tests.daemon_process import DaemonProcess
from tests.gemini_server import GeminiServer
from tests.messages_server import MessagesServer
from tests.ollama_server import OllamaServer
from tests.supervisor.histories import fault_in_facts

SIGNATURE: Final = "c2lnbmF0dXJl"
CALLS: Final[list[Any]] = [("read_file", {"path": "a.txt"}), ("list_files", {"pattern": "**"})]


def test_a_conversation_goes_on_with_another_provider_and_back_again(home: Path, tmp_path: Path, root: Path) -> None:
    thinking = messages_server.block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    call = messages_server.call_block(1, "read_file", {"path": "a.txt"}, "toolu_1")
    thoughtful = messages_server.start() + thinking + call + messages_server.end("tool_use")
    claude = MessagesServer([thoughtful, messages_server.reply("one"), messages_server.reply("three")])
    look = gemini_server.reply("I look.", CALLS, signature=SIGNATURE)
    gemini = GeminiServer([look, gemini_server.reply("two", signature=SIGNATURE), gemini_server.reply("four")])
    local = OllamaServer([ollama_server.reply("five")])
    with claude, gemini, local:
        servers = {"ANTHROPIC_BASE_URL": claude.url, "GEMINI_BASE_URL": gemini.url, "OLLAMA_HOST": local.url}
        with DaemonProcess(home, tmp_path, **servers) as daemon, daemon.client() as client:
            session = client.new_session(root, model="claude-test")
            client.prompt(session, "go")
            for model in ("gemini-3-test", "claude-test", "gemini-3-test", f"ollama/{ollama_server.MODEL}"):
                chosen = {"sessionId": session, "configId": "model", "value": model}
                client.request("session/set_config_option", chosen)
                assert client.prompt(session, "go on")["stopReason"] == "end_turn"
    asked = [*claude.requests, *gemini.requests, *local.requests]
    assert [each.refused for each in asked] == [None] * 7
    replies = {"three": claude, "four": gemini, "five": local}
    assert [len(each.requests) for each in replies.values()] == [3, 3, 1]
    thought = claude.bodies[2]["messages"][1]["content"][0]
    assert thought == {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    parts = [part for content in gemini.bodies[2]["contents"] for part in content["parts"]]
    signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    assert signatures == [gemini_server.UNSIGNED, SIGNATURE, SIGNATURE]
    assert fault_in_facts(daemon.sessions[session]) is None
    told = json.loads(history(daemon.settings, session, "gemini"))
    assert told[: len(gemini.bodies[2]["contents"])] == gemini.bodies[2]["contents"]
