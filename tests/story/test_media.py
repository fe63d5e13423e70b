"""Images and documents through the whole program: read by a tool, sent along by a person, shown to a model or not."""

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from supervisor.journal.facts import CallEnded, ContentsRefused, TurnEnded, TurnStarted
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.media_files import pdf, photo, picture
from tests.messages_server import MessagesServer, error, reply
from tests.script_server import Recorded
from tests.supervisor.command import Strongroom

MODEL = "claude-haiku-5-5"


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer([]) as running:
        yield running


@pytest.fixture
def daemon(tmp_path: Path, server: MessagesServer) -> Iterator[DaemonProcess]:
    with DaemonProcess(tmp_path / "home", tmp_path, ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY="k") as running:
        yield running


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[Lines]:
    with daemon.client() as lines:
        yield lines


def asked(client: Lines, session: str, *blocks: dict[str, Any]) -> Any:
    return client.request("session/prompt", {"sessionId": session, "prompt": list(blocks)})


def image_block(data: bytes, media_type: str = "image/png", **more: str) -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": media_type, **more}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def size_of(source: dict[str, Any]) -> tuple[int, int]:
    assert source["type"] == "base64"
    return Image.open(io.BytesIO(base64.b64decode(source["data"]))).size


def unmarked(messages: list[Any]) -> list[str]:
    """Return each message as it was sent, but for marks of the cache."""
    return [json.dumps(each).replace(', "cache_control": {"type": "ephemeral"}', "") for each in messages]


def heard(client: Lines, kind: str) -> list[dict[str, Any]]:
    updates = [each["params"]["update"] for each in client.heard if each.get("method") == "session/update"]
    return [each for each in updates if each["sessionUpdate"] == kind]


def test_a_model_is_shown_an_image_that_it_reads(
    daemon: DaemonProcess, client: Lines, server: MessagesServer, root: Path
) -> None:
    (root / "photo.jpg").write_bytes(photo(size=(3000, 1500)))
    server.add(reply("", [("read_file", {"path": "photo.jpg"})]), reply("A red one."))
    session = client.new_session(root, model=MODEL)
    asked(client, session, text_block("What is in photo.jpg?"))
    (result,) = server.requests[-1].body["messages"][-1]["content"]
    words, shown = result["content"]
    assert words["text"].startswith("photo.jpg: JPEG image, 784 x 1568 pixels, ")
    assert words["text"].endswith("scaled down from 1500 x 3000 pixels")
    assert size_of(shown["source"]) == (784, 1568)
    (ended,) = daemon.facts_of(session, CallEnded)
    (content,) = ended.contents
    data = (daemon.home / "content" / content.digest).read_bytes()
    assert hashlib.sha256(data).hexdigest() == content.digest
    assert base64.b64decode(shown["source"]["data"]) == data
    (update,) = [each for each in heard(client, "tool_call_update") if each.get("status") == "completed"]
    assert [each["content"]["type"] for each in update["content"]] == ["text", "image"]


def test_what_comes_with_a_prompt_stands_before_its_text_also_after_a_refusal_that_passes(
    daemon: DaemonProcess, client: Lines, server: MessagesServer, root: Path
) -> None:
    server.add(error(400, "Could not process PDF", "invalid_request_error"), reply("Seen."))
    session = client.new_session(root, model=MODEL)
    document = {
        "uri": "file:///tmp/a%20b.pdf",
        "mimeType": "application/pdf",
        "blob": base64.b64encode(pdf("x")).decode(),
    }
    asked(client, session, text_block("Compare."), image_block(picture()), {"type": "resource", "resource": document})
    blocks = server.requests[-1].body["messages"][0]["content"]
    assert [each["type"] for each in blocks] == ["image", "document", "text"]
    assert base64.b64decode(blocks[1]["source"]["data"]) == pdf("x")
    assert blocks[2]["text"] == "Compare."
    (started,) = daemon.facts_of(session, TurnStarted)
    assert [(each.name, each.pages) for each in started.contents] == [("image", 0), ("a b.pdf", 1)]
    assert server.requests[0].body == server.requests[1].body
    assert daemon.facts_of(session, ContentsRefused) == []


def test_a_link_to_an_image_in_the_root_shows_it(client: Lines, server: MessagesServer, root: Path) -> None:
    (root / "a.png").write_bytes(picture())
    server.add(reply("Seen."))
    session = client.new_session(root, model=MODEL)
    links = [{"type": "resource_link", "uri": f"file://{root}/{name}", "name": name} for name in ("a.png", "none.png")]
    asked(client, session, *links, text_block("What is it?"))
    blocks = server.requests[-1].body["messages"][0]["content"]
    assert [each["type"] for each in blocks] == ["image", "text"]
    assert "[none.png](file://" in blocks[1]["text"]


def test_a_request_is_the_same_to_the_byte_after_a_kill(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    server.add(reply("One."), reply("Two."), reply("Two."))
    with daemon.client() as client:
        session = client.new_session(root, model=MODEL)
        asked(client, session, image_block(picture()), text_block("First."))
        asked(client, session, text_block("Second."))
    before = unmarked(server.requests[-1].body["messages"])
    daemon.crash()
    daemon.start()
    with daemon.client() as client:
        client.resume(session)
        asked(client, session, text_block("Third."))
    assert unmarked(server.requests[-1].body["messages"])[: len(before)] == before


def test_a_model_without_eyes_is_told_so_and_given_a_documents_text(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    daemon.end()
    daemon.configure(f'[providers.blind]\nformat = "messages"\nbase_url = "{server.url}"\n')
    daemon.start()
    (root / "a.pdf").write_bytes(pdf("The answer is 42."))
    server.add(reply("", [("read_file", {"path": "a.pdf"})]), reply("42."))
    with daemon.client() as client:
        session = client.new_session(root, model="blind/one")
        asked(client, session, image_block(picture()), text_block("And the PDF?"))
        said = [each["content"]["text"] for each in heard(client, "agent_thought_chunk")]
        assert any("is not shown images" in each for each in said)
        assert any("is not shown documents" in each for each in said)
    first, *_, last = server.requests[-1].body["messages"]
    assert [each["type"] for each in first["content"]] == ["text", "text"]
    assert "64 x 48 pixels" in first["content"][0]["text"]
    assert "this model cannot see images" in first["content"][0]["text"]
    (result,) = last["content"]
    assert "Its text follows.\n\n[Page 1]\nThe answer is 42." in result["content"][1]["text"]


class ParticularServer(MessagesServer):
    """Takes no document, and says at which place it has found one."""

    def fault_in_request(self, request: Recorded) -> str | None:
        for index, message in enumerate(request.body["messages"]):
            for at, block in enumerate(message["content"]):
                place = f"messages.{index}.content.{at}"
                if block["type"] == "document":
                    return f"{place}.pdf.source.base64.data: The PDF specified was not valid."
                for number, each in enumerate(block["content"] if block["type"] == "tool_result" else ()):
                    if each["type"] == "document":
                        return f"{place}.tool_result.content.{number}.pdf.source: The PDF specified was not valid."
        return super().fault_in_request(request)


@pytest.fixture
def particular() -> Iterator[ParticularServer]:
    with ParticularServer([]) as running:
        yield running


def test_a_document_that_the_models_server_refuses_is_words_from_then_on(
    tmp_path: Path, particular: ParticularServer, root: Path
) -> None:
    (root / "a.pdf").write_bytes(pdf("The answer is 42."))
    particular.add(reply("", [("read_file", {"path": "a.pdf"})]), reply("42."), reply("Red."), reply("Yes."))
    keys = {"ANTHROPIC_BASE_URL": particular.url, "ANTHROPIC_API_KEY": "k"}
    with DaemonProcess(tmp_path / "home", tmp_path, **keys) as daemon:
        with daemon.client() as client:
            session = client.new_session(root, model=MODEL)
            asked(client, session, image_block(picture()), text_block("What does a.pdf say?"))
            said = [each["content"]["text"] for each in heard(client, "agent_thought_chunk")]
        (told,) = [each for each in said if "refuses" in each]
        assert "a.pdf: PDF document, 1 page, " in told
        assert "The PDF specified was not valid." in told
        (refused,) = daemon.facts_of(session, ContentsRefused)
        assert [each.name for each in refused.contents] == ["a.pdf"]
        assert [each.status for each in daemon.facts_of(session, TurnEnded)] == ["ok"]
        shown = particular.requests[-1].body["messages"]
        assert shown[0]["content"][0]["type"] == "image"
        words = shown[2]["content"][0]["content"][1]["text"]
        assert "The document itself is not shown: the server of this model refuses it." in words
        assert words.endswith("Its text follows.\n\n[Page 1]\nThe answer is 42.")
        daemon.crash()
        daemon.start()
        with daemon.client() as client:
            client.resume(session)
            asked(client, session, text_block("And the image?"))
        assert [each.refused is None for each in particular.requests] == [True, False, True, True]
        exported = Strongroom(daemon.home, daemon.folder).run("history", session, "--format", "anthropic").json
        assert exported[2]["content"][0]["content"][1]["text"] == words
        assert "refuses a.pdf: PDF document" in Strongroom(daemon.home, daemon.folder).run("history", session).out


@pytest.mark.parametrize(
    ("data", "media_type", "kind"),
    [
        (b"<html></html>", "image/png", "not_text"),
        (picture()[:99], "image/png", "not_text"),
        (picture("JPEG"), "image/png", "not_text"),
        (bytes(8 * 2**20), "image/png", "too_large"),
    ],
)
def test_what_is_not_what_it_claims_ends_the_turn_with_a_kind_and_the_next_goes_on(
    data: bytes, media_type: str, kind: str, daemon: DaemonProcess, client: Lines, server: MessagesServer, root: Path
) -> None:
    server.add(reply("Fine."))
    session = client.new_session(root, model=MODEL)
    params = {"sessionId": session, "prompt": [image_block(data, media_type), text_block("What is it?")]}
    assert client.refused("session/prompt", params)["data"]["kind"] == kind
    assert server.requests == []
    asked(client, session, text_block("Never mind."))
    assert daemon.facts_of(session, TurnStarted)[0].refused
    assert [each["role"] for each in server.requests[-1].body["messages"]] == ["user", "assistant", "user"]


def test_what_is_no_image_is_refused_before_anything_is_recorded(
    daemon: DaemonProcess, client: Lines, root: Path
) -> None:
    session = client.new_session(root, model=scripted(daemon.folder / "s.jsonl", {"text": "Hi."}))
    for block in (image_block(b"x", "image/tiff"), {"type": "image", "data": "no base64!", "mimeType": "image/png"}):
        params = {"sessionId": session, "prompt": [block, text_block("What is it?")]}
        assert client.refused("session/prompt", params)["data"]["kind"] == "invalid_params"
    assert daemon.facts_of(session, TurnStarted) == []


def test_a_loaded_session_shows_what_was_shown(
    client: Lines, server: MessagesServer, daemon: DaemonProcess, root: Path
) -> None:
    (root / "a.png").write_bytes(picture())
    server.add(reply("", [("read_file", {"path": "a.png"})]), reply("Seen."))
    session = client.new_session(root, model=MODEL)
    asked(client, session, image_block(picture()), text_block("Look."))
    with daemon.client() as other:
        other.request("session/load", {"sessionId": session, "cwd": str(root), "mcpServers": []})
        said = [each["content"]["text"] for each in heard(other, "user_message_chunk")]
        assert said[0].startswith("[image: PNG image, 64 x 48 pixels, ")
        assert said[0].endswith("\nLook.")
        (update,) = [each for each in heard(other, "tool_call_update") if each.get("status") == "completed"]
        assert [each["content"]["type"] for each in update["content"]] == ["text", "image"]


def test_a_deleted_session_takes_its_contents_along(
    client: Lines, server: MessagesServer, daemon: DaemonProcess, root: Path
) -> None:
    server.add(reply("Seen."))
    session = client.new_session(root, model=MODEL)
    asked(client, session, image_block(picture()), text_block("Look."))
    (content,) = daemon.facts_of(session, TurnStarted)[0].contents
    assert (daemon.home / "content" / content.digest).exists()
    client.request("session/delete", {"sessionId": session})
    assert list((daemon.home / "content").iterdir()) == []


def test_a_kill_between_the_store_and_the_fact_leaves_a_content_that_nobody_names(
    daemon: DaemonProcess, server: MessagesServer, root: Path
) -> None:
    daemon.end()
    daemon.patch = "from tests.supervisor.dying import prepare_daemon\nprepare_daemon('before', 2, alone=True)\n"
    daemon.start()
    with daemon.client() as client:
        session = client.new_session(root, model=MODEL)
        client.begin(
            "session/prompt", {"sessionId": session, "prompt": [image_block(picture()), text_block("What is it?")]}
        )
        with pytest.raises((EOFError, ConnectionResetError)):
            client.until("nothing")
        assert daemon.wait() < 0
    assert daemon.facts_of(session, TurnStarted) == []
    (kept,) = [each for each in (daemon.home / "content").iterdir() if "." not in each.name]
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == kept.name
    daemon.patch = ""
    daemon.start()
    server.add(reply("Fine."))
    with daemon.client() as client:
        client.resume(session)
        asked(client, session, text_block("Hello."))
        client.request("session/delete", {"sessionId": session})
    assert list((daemon.home / "content").iterdir()) == []


def test_a_content_that_is_gone_is_said_to_be(
    daemon: DaemonProcess, client: Lines, server: MessagesServer, root: Path
) -> None:
    server.add(reply("Seen."), reply("No more."))
    session = client.new_session(root, model=MODEL)
    asked(client, session, image_block(picture()), text_block("Look."))
    (content,) = daemon.facts_of(session, TurnStarted)[0].contents
    (daemon.home / "content" / content.digest).write_bytes(b"something else")
    asked(client, session, text_block("And now?"))
    blocks = server.requests[-1].body["messages"][0]["content"]
    assert [each["type"] for each in blocks] == ["text", "text"]
    assert "it is not kept any more" in blocks[0]["text"]


def test_reports_name_what_was_shown_and_the_messages_api_gets_it(
    daemon: DaemonProcess, client: Lines, server: MessagesServer, root: Path
) -> None:
    (root / "a.png").write_bytes(picture())
    server.add(reply("", [("read_file", {"path": "a.png"})]), reply("Seen."))
    session = client.new_session(root, model=MODEL)
    asked(client, session, image_block(picture()), text_block("Look."))
    strongroom = Strongroom(daemon.home, daemon.folder)
    text = strongroom.run("history", session).out
    assert "> [image: PNG image, 64 x 48 pixels, " in text
    assert "    ok: a.png: PNG image, 64 x 48 pixels, " in text
    (ended,) = daemon.facts_of(session, CallEnded)
    assert "a.png: PNG image, 64 x 48 pixels" in strongroom.run("why", ended.call).out
    messages = strongroom.run("history", session, "--format", "anthropic").json
    assert messages[0]["content"][0] == server.requests[-1].body["messages"][0]["content"][0]
    assert messages[2]["content"][0]["content"][1]["source"]["media_type"] == "image/png"


def test_a_single_call_says_what_it_is_and_where_it_is_kept(strongroom: Strongroom, root: Path) -> None:
    (root / "a.png").write_bytes(picture())
    done = strongroom.run("call", "read_file", '{"path": "a.png"}', "--root", "root")
    assert done.code == 0
    assert done.json["content"].startswith("a.png: PNG image, 64 x 48 pixels, ")
    (kept,) = done.json["contents"]
    assert hashlib.sha256(Path(kept["path"]).read_bytes()).hexdigest() == kept["digest"]
    (root / "b.png").write_bytes(picture()[:99])
    refused = strongroom.run("call", "read_file", '{"path": "b.png"}', "--root", "root")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "not_text")
    assert refused.json["error"]["message"] == '"b.png": This PNG image is damaged: it cannot be decoded.'


def test_an_item_of_a_batch_brings_images(strongroom: Strongroom, server: MessagesServer, root: Path) -> None:
    (strongroom.folder / "a.png").write_bytes(picture())
    (strongroom.folder / "b.png").write_bytes(picture()[:99])
    items = [{"id": each, "prompt": "What is it?", "images": [f"{each}.png"]} for each in "ab"]
    (strongroom.folder / "in.jsonl").write_text("\n".join(map(json.dumps, items)))
    strongroom.environment |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
    server.add(reply("Red and blue."))
    done = strongroom.run("batch", "in.jsonl", "--output", "out.jsonl", "--root", "root", "--model", MODEL)
    assert done.code == 1
    results = {each["id"]: each for each in map(json.loads, (strongroom.folder / "out.jsonl").read_text().splitlines())}
    assert (results["a"]["status"], results["a"]["answer"]) == ("ok", "Red and blue.")
    assert (results["b"]["status"], results["b"]["error"]["kind"]) == ("error", "not_text")
    assert [each["type"] for each in server.requests[-1].body["messages"][0]["content"]] == ["image", "text"]


def test_a_line_of_the_console_brings_what_it_names(strongroom: Strongroom, server: MessagesServer, root: Path) -> None:
    (strongroom.folder / "a.png").write_bytes(picture())
    strongroom.environment |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
    server.add(reply("Red and blue."))
    done = strongroom.run("console", "--root", "root", "--model", MODEL, stdin="What is in @a.png?\n")
    assert strongroom.run("daemon", "--stop").code == 0
    assert (done.code, done.out) == (0, "Red and blue.\n")
    blocks = server.requests[-1].body["messages"][0]["content"]
    assert [each["type"] for each in blocks] == ["image", "text"]
    assert blocks[1]["text"] == "What is in @a.png?"


def test_a_prompt_of_the_command_line_brings_what_it_names_and_tells_what_is_refused(
    strongroom: Strongroom, particular: ParticularServer, root: Path
) -> None:
    (strongroom.folder / "a.pdf").write_bytes(pdf("x"))
    strongroom.environment |= {"ANTHROPIC_BASE_URL": particular.url, "ANTHROPIC_API_KEY": "k"}
    particular.add(reply("An x."))
    done = strongroom.run("-p", "What is in @a.pdf?", "--root", "root", "--model", MODEL, stdin="")
    assert (done.code, done.out) == (0, "An x.\n")
    shown = [[each["type"] for each in one.body["messages"][0]["content"]] for one in particular.requests]
    assert shown == [["document", "text"], ["text", "text"]]
    assert f"note: The server of {MODEL} refuses a.pdf: PDF document, 1 page, " in done.err
