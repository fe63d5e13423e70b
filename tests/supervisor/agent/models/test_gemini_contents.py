"""A reply of Gemini's own, where the conversation kept less of it than came, or something else."""

from typing import Any, Final

from supervisor.agent.models.gemini_contents import contents
from supervisor.journal.facts import ReplyOrigin
from tests.gemini_server import call
from tests.supervisor.model_requests import assistant, request, result, use, user

SIGNED: Final = call("read_file", {}, "c2ln")
STAND_IN: Final = "skip_thought_signature_validator"


def parts(items: list[dict[str, Any]], *blocks: str | dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a reply that came as `items` and was kept as `blocks`."""
    results: list[Any] = [result(each["id"]) for each in blocks if isinstance(each, dict)]
    origins = {1: ReplyOrigin("gemini", "m", "gemini", items)}
    asked = request(user(), assistant(*blocks), user(*(results or ["go on"])), origins=origins)
    told: list[dict[str, Any]] = contents(asked, "gemini", "gemini-3-test")[1]["parts"]
    return told


def test_a_call_that_was_not_kept_does_not_go_back() -> None:
    items = [SIGNED, call("read_file", {}), {"text": "so"}]
    assert parts(items, use("c1"), "so") == [SIGNED, {"text": "so"}]


def test_a_reply_that_says_nothing_is_told_as_it_was_kept() -> None:
    thought = {"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"}
    assert parts([thought], "(no answer)") == [{"text": "(no answer)"}]


def test_calls_that_did_not_come_as_such_are_told_as_they_were_kept() -> None:
    assert parts([{"text": "read_file()"}], use("c1")) == [call("read_file", {}, STAND_IN, "c1")]


def test_a_call_goes_back_by_the_id_and_the_name_that_it_has_here() -> None:
    items = [call("read file", {}, "c2ln", "same")]
    assert parts(items, use("call_2", "read_file")) == [call("read_file", {}, "c2ln", "call_2")]


def test_what_one_role_says_in_several_messages_is_one_content() -> None:
    told = contents(request(user("one"), user("two"), assistant("so"), assistant("and so")), "gemini", "gemini-3-test")
    assert [[part["text"] for part in each["parts"]] for each in told] == [["one", "two"], ["so", "and so"]]


def test_the_first_content_is_the_users() -> None:
    assert [each["role"] for each in contents(request(assistant("so"), user()), "gemini", "m")] == [
        "user",
        "model",
        "user",
    ]
