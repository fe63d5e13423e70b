"""Ollama's answers without a socket: lines in, one Reply out.

Rule: nothing that a server sends may surprise us. Calls come whole and may lack ids; an error comes as a line of its
own after a status of 200; a reply is complete with the line that says so or not at all.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from supervisor.agent.models.event_stream import Event, json_object, parsed_object
from supervisor.agent.models.model import Progress, Reply, TextDelta, ThoughtDelta, ToolUse, Usage
from supervisor.agent.models.ollama_messages import FORMAT_NAME
from supervisor.agent.models.server_errors import reported_error
from supervisor.agent.models.tagged_thinking import TaggedThinking
from supervisor.errors import ModelError
from supervisor.journal.facts import ReplyOrigin

_STOPS: Final[Mapping[str, str]] = {"stop": "", "": "", "length": "max_tokens", "pause_turn": ""}
"""Why an answer ended, to the Messages API's stop reason; "" is the obvious one. It has no pauses."""
_NO_ANSWERS: Final = frozenset({"load", "unload"})
"""The server has only loaded the model, or put it away."""
_COUNTS: Final[Mapping[str, str]] = {"prompt_eval_count": "input_tokens", "eval_count": "output_tokens"}


class OllamaReader:
    """Puts one reply together and shows it as it arrives."""

    def __init__(self, show: Callable[[Progress], None]) -> None:
        self._show = show
        self._texts: list[str] = []
        self._tagged = TaggedThinking()
        self._thoughts: list[str] = []
        self._calls: list[tuple[ToolUse, dict[str, Any]]] = []
        self._sent_calls: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}
        self.started = False
        """The server has sent a line of this API."""
        self.complete = False
        """The server has said that this was all."""
        self.stopped = False
        """It says so with all that there is, and never before."""

    def feed(self, event: Event) -> None:
        if self.complete:
            return
        told = json_object(event)
        if told.get("error") is not None:
            raise reported_error(told)
        match told.get("message"):
            case None if told.get("done") is True:
                pass
            case dict(message):
                self._take(message)
            case _:
                raise ModelError("bad_response", "a line of the answer has no message")
        self.started = True
        if told.get("done") is True:
            if (reason := _reason(told)) in _NO_ANSWERS and not (self._texts or self._calls):
                raise ModelError("api_error", f"the server has answered nothing ({reason})")
            self._last, self.complete = told, True

    def reply(self) -> Reply:
        usage: Usage = {
            name: count for sent, name in _COUNTS.items() if type(count := self._last.get(sent)) is int and count >= 0
        }
        reason = _reason(self._last)
        self._tell(self._tagged.rest())
        text = "".join(self._texts)
        told = Reply.at_once(text if text.strip() else "", self._calls, usage, _STOPS.get(reason, reason))
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if self._thoughts:
            message["thinking"] = "".join(self._thoughts)
        if self._sent_calls:
            message["tool_calls"] = self._sent_calls
        item = {"message": message, "prompt_eval_count": usage.get("input_tokens", 0)}
        return msgspec.structs.replace(told, origin=ReplyOrigin("", "", FORMAT_NAME, [item]))

    def _take(self, message: dict[str, Any]) -> None:
        pieces = [message.get(key) or "" for key in ("thinking", "content")]
        if not all(isinstance(piece, str) for piece in pieces):
            raise ModelError("bad_response", "the thinking or the content of a message is no text")
        thought, content = pieces
        if thought:
            self._thoughts.append(thought)
            self._show(ThoughtDelta(thought))
        if content:
            self._tell(self._tagged.take(content))
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list):
            raise ModelError("bad_response", "the tool calls of a message are no list")
        for call in calls:
            self._call(call)

    def _tell(self, told: Iterable[TextDelta | ThoughtDelta]) -> None:
        for each in told:
            if isinstance(each, TextDelta):
                self._texts.append(each.text)
            self._show(each)

    def _call(self, call: Any) -> None:
        match call:
            case {"function": {"name": str(name), **function}} if name:
                given = function.get("arguments") or {}
                raw = given if isinstance(given, str) else msgspec.json.encode(given).decode()
                parsed: dict[str, Any] = given if isinstance(given, dict) else parsed_object(raw)
                identity = call.get("id")
                self._calls.append((ToolUse(identity if isinstance(identity, str) else "", name, raw), parsed))
                self._sent_calls.append(call)
            case _:
                raise ModelError("bad_response", "a tool call lacks its name")


def _reason(line: Mapping[str, Any]) -> str:
    """Return why an answer has ended; "" where its last line does not say."""
    reason = line.get("done_reason")
    return reason if isinstance(reason, str) else ""
