"""What is left out of a request that a server refuses for an image or a document: as little as it takes."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from supervisor.agent.content_refusals import RefusalSearch
from supervisor.agent.models.model import CONTENTS, Block, ModelRequest
from supervisor.agent.models.retry import kind_of_status
from supervisor.errors import ModelError, ModelErrorKind

IMAGE: Final = "image"
PDF: Final = "document"


def block(name: str) -> Block:
    """Return the block of a content; the names of documents are in capital letters."""
    return {"type": PDF if name.isupper() else IMAGE, "source": {"type": "content", "digest": name, "media_type": ""}}


def request(*turns: str, left_out: frozenset[str] = frozenset()) -> ModelRequest:
    """Return a conversation whose lines bring these contents, each named by a letter; "[" puts one into a result."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        blocks: list[Block] = [block(each) if each not in left_out else {"type": "text", "text": each} for each in turn]
        if turn.startswith("["):
            blocks = [{"type": "tool_result", "tool_use_id": "t", "content": blocks[1:]}]
        messages.append({"role": "user", "content": [*blocks, {"type": "text", "text": "Look."}]})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "Yes."}]})
    messages.pop()
    held = frozenset(index for index, each in enumerate(messages) if any(map(holds, each["content"])))
    return ModelRequest("", (), messages, 0, with_media=held)


def holds(block: Block) -> bool:
    return block["type"] in CONTENTS or any(map(holds, block.get("content", ())))


Words = Callable[[str, int, int], str]
"""What a server says of a content that it refuses, in such a place."""

UNPLACED: Final[dict[str, Words]] = {
    "Anthropic": lambda name, _message, _at: f"Could not process {'PDF' if name.isupper() else 'image'}",
    "OpenAI": lambda name, _message, _at: (
        "The file you provided is invalid." if name.isupper() else "You uploaded an unsupported image."
    ),
    "Gemini": lambda name, _message, _at: (
        "The document has no pages." if name.isupper() else "Unable to process input image. Please retry."
    ),
}


def placed(name: str, message: int, at: int) -> str:
    kind = "pdf" if name.isupper() else "image"
    return f"messages.{message}.content.{at}.{kind}.source.base64.data: The {kind} specified was not valid."


def found(turns: Sequence[str], bad: str, words: Words, status: int = 400) -> tuple[set[str], int]:
    """Return what is left out in the end, and how many requests a server has refused until then."""
    search, refused = RefusalSearch(), 0
    while True:
        asked = request(*turns, left_out=search.left_out)
        places = [
            (each["source"]["digest"], index, at)
            for index, message in enumerate(asked.messages)
            for at, each in enumerate(message["content"])
            if each["type"] in CONTENTS and each["source"]["digest"] in bad
        ]
        if not places:
            return set(search.left_out), refused
        said = words(*places[0])
        refused += 1
        kind = kind_of_status(status, said)
        assert search.goes_on(ModelError(kind, f"api.example answered HTTP {status}: {said}"), asked)


@pytest.mark.parametrize("turns", [["a"], ["abB"], ["ab", "cA", "d"], ["A", "B", "C", ""]])
def test_what_is_named_by_its_place_alone_is_left_out_at_once(turns: list[str]) -> None:
    names = sorted(set("".join(turns)))
    for bad in (*names, "".join(names)):
        assert found(turns, bad, placed) == (set(bad), len(bad))


@pytest.mark.parametrize("words", UNPLACED.values(), ids=UNPLACED)
@pytest.mark.parametrize("turns", [["a"], ["abB"], ["ab", "cA", "d"], ["A", "Bb", "C", ""]])
def test_one_that_is_named_by_its_kind_is_found_among_its_kind(turns: list[str], words: Words) -> None:
    names = sorted(set("".join(turns)))
    for bad in names:
        left_out, refused = found(turns, bad, words)
        assert left_out == {bad}
        assert refused <= sum(each.isupper() == bad.isupper() for each in names) + (words is not UNPLACED["OpenAI"])


@pytest.mark.parametrize("words", [*UNPLACED.values(), lambda *_: "Request contains an invalid argument."])
def test_however_many_are_refused_a_request_without_them_is_made_in_the_end(words: Words) -> None:
    for turns in (["abcdefghijklmnop"], ["ab", "cA", "d"], ["A", "BbC", "C", ""]):
        for bad in ("ab", "Ab", "ABC", "abcdefghijklmnopABC"):
            left_out, refused = found(turns, bad, words)
            assert left_out >= set(bad) & set("".join(turns))
            assert refused <= 24


def test_a_result_of_a_tool_is_a_place_too() -> None:
    search = RefusalSearch()
    error = ModelError("invalid_request", "messages.2.content.0.tool_result.content.1.image.source: bad")
    assert search.goes_on(error, request("a", "[bc"))
    assert search.left_out == {"c"}


@pytest.mark.parametrize(
    ("said", "turns", "left"),
    [
        ("At most 1 image(s) may be provided in one request.", ["ab", "c"], "c"),
        ("Too many images in the request.", ["ab", "c"], "c"),
        ("You may send up to 2 images.", ["ab", "cA"], "bcA"),
        ("A maximum of 100 PDF pages may be provided.", ["aA", "B"], "aAB"),
    ],
)
def test_where_there_are_too_many_the_oldest_are_left_out_first(said: str, turns: list[str], left: str) -> None:
    search = RefusalSearch()
    assert search.goes_on(ModelError("invalid_request", said), request(*turns))
    if "pages" not in said:
        assert set("".join(turns)) - search.left_out == set(left)
    else:
        assert len(search.left_out) == 1


@pytest.mark.parametrize(
    ("kind", "said", "trials"),
    [
        ("rate_limited", "too many images", []),
        ("authentication", "image", []),
        ("api_error", "Internal server error", []),
        ("api_error", "image input is not supported", ["c", "abc"]),
        ("not_found", "No endpoints found that support image input", ["c", "b", "a", "abc"]),
        ("invalid_request", "Could not process image", ["", "c", "b", "a", "abc"]),
        ("invalid_request", "You uploaded an unsupported image.", ["c", "b", "a", "abc"]),
        ("invalid_request", "Provider returned error", ["c", "abc"]),
        ("request_too_large", "Request Entity Too Large", ["c", "abc"]),
        ("context_full", "prompt is too long: 211000 tokens > 200000 maximum", ["c"]),
    ],
)
def test_what_is_tried_is_worth_its_time(kind: ModelErrorKind, said: str, trials: list[str]) -> None:
    search, tried = RefusalSearch(), []
    while search.goes_on(ModelError(kind, said), request("ab", "c", left_out=search.left_out)):
        tried.append(search.left_out)
    assert tried == [frozenset(each) for each in trials]


def test_a_conversation_without_contents_is_refused_for_something_else() -> None:
    assert not RefusalSearch().goes_on(ModelError("invalid_request", "image"), request("", ""))


@pytest.mark.parametrize(
    "place", ["messages.9.content.0", "messages.0.content.9", "messages.0.content.1", "messages.1"]
)
def test_a_place_at_which_nothing_is_means_nothing(place: str) -> None:
    search = RefusalSearch()
    assert search.goes_on(ModelError("invalid_request", f"{place}.text: bad"), request("a", "b"))
    assert search.left_out == {"b"}
