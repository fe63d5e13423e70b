"""Images and documents of a request: the newest that it has room for, and words in place of the others."""

from pathlib import Path
from typing import Any

import pytest

from supervisor.agent.input_bound import most_input
from supervisor.agent.models.inline_contents import inlined
from supervisor.agent.models.model import CONTENTS, ModelRequest
from supervisor.agent.shown_contents import ENCODED_AT_MOST, IMAGES_AT_MOST, PAGES_AT_MOST, filled
from supervisor.agent.transcript import Transcript
from supervisor.categories.media import MediaConfig
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import CallEnded, ContentsRefused, Fact, Replied, TurnEnded, TurnStarted
from supervisor.journal.kept_content import KeptContent

MB = 2**20


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "content", MediaConfig())


def image(store: ContentStore, data: bytes, size: int | None = None) -> KeptContent:
    return KeptContent(store.put("s", data), "image/png", size or len(data), "a.png", 4, 3)


def document(store: ContentStore, data: bytes, pages: int, text: bytes = b"") -> KeptContent:
    kept = store.put("s", text) if text else ""
    return KeptContent(store.put("s", data), "application/pdf", len(data), "a.pdf", pages=pages, text=kept)


def turns(*contents: tuple[KeptContent, ...]) -> list[Fact]:
    """Return a session in which each turn brings contents, and has an answer."""
    facts: list[Fact] = []
    for number, each in enumerate(contents, 1):
        facts.append(TurnStarted(number, f"line {number}", contents=each))
        facts.append(Replied(number, number - 1, [{"type": "text", "text": "ok"}], "end_turn", {}))
        facts.append(TurnEnded(number, "ok", "ok"))
    return facts[:-2]


def request(facts: list[Fact], store: ContentStore | None, sees: frozenset[str] = CONTENTS) -> ModelRequest:
    transcript = Transcript(facts)
    before = repr(transcript.messages)
    found = filled(ModelRequest("", (), transcript.messages, 0), transcript, store, sees)
    assert repr(transcript.messages) == before
    return found


def kinds(found: ModelRequest) -> list[list[str]]:
    return [[block["type"] for block in message["content"]] for message in found.messages if message["role"] == "user"]


def test_contents_stand_before_the_line_and_are_named_by_their_digest(store: ContentStore) -> None:
    one = image(store, b"one")
    found = request(turns((one,)), store)
    assert found.messages[0]["content"] == [
        {"type": "image", "source": {"type": "content", "digest": one.digest, "media_type": "image/png"}},
        {"type": "text", "text": "line 1"},
    ]
    assert dict(found.media) == {one.digest: "b25l"}
    assert found.with_media == {0}


def test_only_messages_that_name_contents_are_copied(store: ContentStore) -> None:
    found = request(turns((), (image(store, b"one"),), ()), store)
    assert found.with_media == {2}
    sent = inlined(found, found.messages)
    assert [each is before for each, before in zip(sent, found.messages, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert sent[2]["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": "b25l"}


def test_where_there_is_no_room_for_one_more_old_ones_go_until_half_is_free(store: ContentStore) -> None:
    large = ENCODED_AT_MOST * 3 // 4 // 4
    contents = [(image(store, bytes([each]), large),) for each in range(7)]
    shown = [[each[0] for each in kinds(request(turns(*contents[:most]), store))] for most in (4, 5, 6, 7)]
    assert [each.count("image") for each in shown] == [4, 2, 3, 4]
    assert shown[-1] == ["text"] * 3 + ["image"] * 4
    found = request(turns(*contents), store)
    assert "the newest ones alone" in found.messages[0]["content"][0]["text"]
    assert (len(found.media), found.left_out) == (4, 3)


@pytest.mark.parametrize(("most", "shown"), [(100, 100), (101, 50), (102, 51), (151, 100), (152, 50)])
def test_no_more_images_are_shown_than_servers_take(most: int, shown: int, store: ContentStore) -> None:
    found = request(turns(*[(image(store, b"one"),)] * most), store)
    assert [each[0] for each in kinds(found)] == ["text"] * (most - shown) + ["image"] * shown


def test_what_comes_at_once_is_shown_as_far_as_there_is_room(store: ContentStore) -> None:
    one = image(store, b"one")
    found = request(turns((one,) * 50, (one,) * 70), store)
    assert [each.count("image") for each in kinds(found)] == [0, 70]
    assert [each.count("image") for each in kinds(request(turns((one,) * (IMAGES_AT_MOST + 2)), store))] == [100]
    pages = [(document(store, b"%d" % each, PAGES_AT_MOST // 2),) for each in range(3)]
    assert kinds(request(turns(*pages), store)) == [["text", "text"], ["text", "text"], ["document", "text"]]


def test_a_document_of_too_many_pages_is_its_text(store: ContentStore) -> None:
    found = request(turns((document(store, b"x", PAGES_AT_MOST + 1, b"[Page 1]\nIts text."),)), store)
    assert "has more than 100 pages" in found.messages[0]["content"][0]["text"]
    assert found.messages[0]["content"][0]["text"].endswith("\n\n[Page 1]\nIts text.")
    assert found.with_media == frozenset()


@pytest.mark.parametrize(
    ("sees", "shown"),
    [(CONTENTS, ["image", "document", "text"]), ({"image"}, ["image", "text", "text"]), (set(), ["text"] * 3)],
)
def test_a_model_is_shown_what_it_can_see(sees: set[str], shown: list[str], store: ContentStore) -> None:
    facts = turns((image(store, b"one"), document(store, b"two", 1)))
    assert kinds(request(facts, store, frozenset(sees))) == [shown]


def test_a_budget_holds_what_servers_count_of_pages_and_images(store: ContentStore) -> None:
    facts = turns((image(store, b"one"), document(store, b"two", 5), document(store, b"three", PAGES_AT_MOST - 5)))
    transcript = Transcript(facts)
    most = most_input(request(facts, store), None, transcript.contents)
    assert most > 4_784 + PAGES_AT_MOST * (2_481 + 4_784)  # of Claude: an image, a page of a table, and its picture
    words = request(facts, store, frozenset())
    assert most_input(words, None, transcript.contents) < 3_000


def test_what_its_server_refuses_is_words_for_one_model(store: ContentStore) -> None:
    one, two = image(store, b"one"), document(store, b"two", 1, b"Its text.")
    facts = [*turns((one, two)), ContentsRefused(1, "m", (two,), "no")]
    transcript = Transcript(facts)
    refused = transcript.refused_contents["m"]
    found = filled(ModelRequest("", (), transcript.messages, 0), transcript, store, CONTENTS, refused)
    assert kinds(found) == [["image", "text", "text"]]
    said = found.messages[0]["content"][1]["text"]
    assert said.endswith("not shown: the server of this model refuses it.) Its text follows.\n\nIts text.")
    assert list(found.media) == [one.digest]
    assert kinds(request(facts, store)) == [["image", "document", "text"]]


def test_what_is_gone_is_said_to_be(store: ContentStore) -> None:
    one = image(store, b"one")
    store.path(one.digest).unlink()
    for where in (store, None):
        (said, _line) = request(turns((one,)), where).messages[0]["content"]
        assert (
            said["text"]
            == "(a.png: PNG image, 4 x 3 pixels, 3 B. The image itself is not shown: it is not kept any more.)"
        )


def test_within_a_result_of_a_tool_they_stand_behind_its_words(store: ContentStore) -> None:
    one = image(store, b"one")
    use: dict[str, Any] = {"type": "tool_use", "id": "c", "name": "read_file", "input": {}}
    facts: list[Fact] = [
        TurnStarted(1, "look"),
        Replied(1, 0, [use], "tool_use", {}),
        CallEnded(1, "c", "read_file", True, "a.png: PNG image", contents=(one,)),
    ]
    found = request(facts, store)
    (result,) = found.messages[2]["content"]
    assert [each["type"] for each in result["content"]] == ["text", "image"]
    assert found.with_media == {2}
    (result,) = request(facts, store, frozenset()).messages[2]["content"]
    assert [each["type"] for each in result["content"]] == ["text", "text"]
    assert inlined(found, found.messages)[2]["content"][0]["content"][1]["source"]["data"] == "b25l"


def test_a_line_without_words_needs_none(store: ContentStore) -> None:
    one = image(store, b"one")
    assert kinds(request([TurnStarted(1, "", contents=(one,))], store)) == [["image"]]


def test_a_conversation_without_any_is_left_as_it_is(store: ContentStore) -> None:
    assert Transcript(turns((), ())).with_contents == set()


def test_a_turn_whose_content_was_refused_asked_the_model_nothing() -> None:
    for refused, asked in ((False, 1), (True, 0)):
        end = TurnEnded(1, "error", "", kind="timeout", message="It takes too long.")
        assert Transcript([TurnStarted(1, "look", refused=refused), end]).step == asked
