"""A conversation as a list of messages, as a Python program reads it. Pure.

Rule: the same updates make the same record, whether they come live or are replayed.
"""

from typing import Any

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link_events import SessionEvent


class MessageHistory:
    """A conversation, made of the updates of its session, live or replayed."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}
        self._message = ""
        """The id of the message that is being added to; "" while none is."""

    def messages(self) -> list[dict[str, Any]]:
        """Return a copy of it."""
        return [dict(message) for message in self._messages]

    def said(self, text: str) -> None:
        """Take what the person asks, which the daemon does not tell the one who asked."""
        self._messages.append({"role": "user", "content": text})
        self._message = ""

    def take(self, event: SessionEvent) -> None:
        """Take one more event into account."""
        match event:
            case extensions.TurnState() if event.retry and self._message:
                del self._messages[-1]  # the model is asked again, and says it anew
                self._message = ""
            case schema.SessionUpdate(update=update):
                self._add(update)

    def _add(self, update: schema.Update) -> None:
        match update:
            case schema.UserMessageChunk(content=content):
                self.said(content.text)
            case schema.AgentMessageChunk(content=content, message_id=number):
                self._answer(content.text, number or "answer")
            case schema.ToolCall():
                facts = requests.call_facts(update.meta)
                name = facts.tool if facts is not None else update.title
                call = {"role": "tool", "name": name, "input": update.raw_input}
                self._calls[update.tool_call_id] = call
                self._messages.append(call)
                self._message = ""
            case schema.ToolCallUpdate() if update.tool_call_id in self._calls:
                self._change(self._calls[update.tool_call_id], update)

    def _answer(self, text: str, number: str) -> None:
        if number == self._message:
            self._messages[-1]["content"] += text
        else:
            self._messages.append({"role": "assistant", "content": text})
            self._message = number

    def _change(self, call: dict[str, Any], update: schema.ToolCallUpdate) -> None:
        if update.raw_input is not None:
            call["input"] = update.raw_input
        texts = schema.texts_of(update.content)
        text = texts[0] if texts else ""  # what follows the result is for people
        match update.status:
            case "completed":
                call["output"] = text
            case "failed":
                facts = requests.call_facts(update.meta)
                call["error"] = {"kind": facts.kind if facts is not None else None, "message": text}
