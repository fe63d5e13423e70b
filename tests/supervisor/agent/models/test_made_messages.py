"""Messages that were made for the request before: the same as if each was made again, and made once."""

from typing import Any, Final

import msgspec
import pytest

from supervisor.agent.models import chat_api, responses_api
from supervisor.agent.models.made_messages import MadeMessages
from supervisor.agent.models.wire_format import WireFormat
from supervisor.journal.facts import ReplyOrigin
from tests.supervisor.model_requests import assistant, request, result, use, user

ITEMS: Final[dict[str, list[dict[str, Any]]]] = {
    "chat": [{"tool_calls": [{"function": {"arguments": '{ "path": "a" }'}}], "reasoning_content": "Hm."}],
    "responses": [{"type": "function_call", "id": "f", "call_id": "x", "name": "read_file", "arguments": "{ }"}],
}
FORMATS: Final[dict[str, WireFormat]] = {"chat": chat_api.FORMAT, "responses": responses_api.FORMAT}


@pytest.mark.parametrize("name", FORMATS)
def test_a_conversation_that_goes_on_changes_and_goes_elsewhere_is_told_as_it_is(name: str) -> None:
    made = MadeMessages()
    messages, origins = [user("go")], {1: ReplyOrigin("p", "m", name, ITEMS[name])}
    told = [assistant("I look.", use("c1")), user(result("c1")), assistant("Done."), user("And?")]
    requests = [(request(*messages), "p")]
    for each in told:
        messages = [*messages, each]
        requests.append((request(*messages, origins=origins), "p"))
    longer = {**messages[2], "content": [*messages[2]["content"], {"type": "text", "text": "(more)"}]}
    requests.append((request(*messages[:2], longer, *messages[3:], origins=origins), "p"))  # one has grown
    requests.append((request(*messages, origins={}), "p"))  # who wrote one is not known any more
    requests += [(request(*messages, origins=origins), where) for where in ("p", "q", "p")]
    requests.append((request(*messages[:2], origins=origins), "p"))
    for asked, provider in requests:
        plain = FORMATS[name].body(asked, "m", provider)
        assert FORMATS[name].body(msgspec.structs.replace(asked, made=made), "m", provider) == plain


def test_each_message_is_made_once_until_one_before_it_is_another() -> None:
    made, seen = MadeMessages(), list[str]()

    def make(message: dict[str, Any], _sent: object) -> list[dict[str, Any]]:
        seen.append(message["content"][0]["text"])
        return [message]

    messages = [user("1"), assistant("2")]
    for more in (user("3"), assistant("4")):
        messages.append(more)
        assert list(made.parts(("f", "p"), messages, {}, make)) == messages
    assert seen == ["1", "2", "3", "4"]
    messages[2] = user("5")
    assert list(made.parts(("f", "p"), messages, {}, make)) == messages
    made.forget()
    assert list(made.parts(("f", "p"), messages, {}, make)) == messages
    assert seen == ["1", "2", "3", "4", "5", "4", "1", "2", "5", "4"]
