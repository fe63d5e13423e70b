"""Chat Completions' chunks without a socket: events in, one Reply out.

Rule: nothing that a server sends may surprise us. A reply is complete with `[DONE]`, or with the end of the answer once
a choice has said why it finished. Of several choices the first counts; what is no part of this API is ignored, what
contradicts it is a ModelError "bad_response".

    Event -> ChatReader -> Reply, its origin with what the server wants back
                 |-> show(TextDelta | ThoughtDelta)

Source: https://platform.openai.com/docs/api-reference/chat-streaming. Thinking is not in it. DeepSeek has
`reasoning_content` (https://api-docs.deepseek.com/guides/thinking_mode): it must come back with the replies of a turn
that calls tools, also where it is empty, and is ignored elsewhere. OpenRouter has `reasoning_details`
(https://openrouter.ai/docs/use-cases/reasoning-tokens), which must come back unchanged; vLLM, Groq and Ollama
`reasoning`; Mistral parts of the content. So a reply goes back with what it came with, to its own provider. Thinking
between tags in the text is shown as such and does not go back: the templates of the models that write it drop it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from supervisor.agent.models.chat_calls import ArrivingCalls
from supervisor.agent.models.event_stream import Event, json_object, parsed_object
from supervisor.agent.models.model import Progress, Reply, TextDelta, ThoughtDelta, Usage
from supervisor.agent.models.server_errors import reported_error
from supervisor.agent.models.tagged_thinking import TaggedThinking
from supervisor.errors import ModelError, ModelErrorKind
from supervisor.journal.facts import ReplyOrigin

FORMAT_NAME: Final = "chat"
THOUGHTS: Final = ("reasoning_content", "reasoning")
"""Fields with thinking as text; where there are both, they say the same."""
RETURNED: Final = (*THOUGHTS, "reasoning_details")
"""Fields of a reply that go back to its provider."""
_STOPS: Final[Mapping[str, str]] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "content_filter": "refusal",
}
"""Finish reasons by the Messages API's names; all others are the obvious one: calls, or an end."""
_FAILED: Final[Mapping[str, ModelErrorKind]] = {"error": "api_error", "insufficient_system_resource": "overloaded"}
"""Finish reasons of replies that are none."""
_DETAIL_TEXTS: Final = ("text", "summary", "data")
"""Fields of reasoning details that come in pieces."""
_UNIQUE_DETAIL: Final = "reasoning.encrypted"


class ChatReader:
    """Puts one reply together and shows it as it arrives."""

    def __init__(self, show: Callable[[Progress], None]) -> None:
        self._show = show
        self._text: list[str] = []
        self._tagged = TaggedThinking()
        self._refusal: list[str] = []
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[tuple[dict[str, Any], dict[str, list[str]]]] = []
        self._calls = ArrivingCalls()
        self._usage: Usage = {}
        self._finish = ""
        self.started = False
        """The server has sent a chunk of this API."""
        self.complete = False
        """The server has said that this was all."""

    def feed(self, event: Event) -> None:
        data = event.data.strip()
        if self.complete or not data:
            return
        if data == b"[DONE]":
            if not self.started:
                raise ModelError("bad_response", "the answer is nothing but its end")
            self.complete = True
            return
        told = json_object(event)
        if event.name == "error" or told.get("error") or told.get("object") == "error":
            raise reported_error(told)
        if isinstance(usage := told.get("usage"), dict):
            self._usage = _counted(usage)
        match told.get("choices"):
            case [*choices]:
                self.started = True
                first = (each for each in choices if isinstance(each, dict) and each.get("index", 0) in (0, None))
                self._take(next(first, {}))
            case None:
                pass
            case _:
                raise ModelError("bad_response", "the choices of a chunk are no list")

    @property
    def stopped(self) -> bool:
        """A choice has said why it finished."""
        return bool(self._finish)

    def reply(self) -> Reply:
        """Return the complete reply.

        Raises:
            ModelError: a tool call has no name.
        """
        self._tell(self._tagged.rest())
        text, refusal, calls = "".join(self._text), "".join(self._refusal), list(self._calls.finished())
        inputs = [(use, parsed_object(use.arguments)) for use, _ in calls]
        stop = _STOPS.get(self._finish.lower(), "")
        if refusal.strip() and not text.strip() and not calls:
            text, stop = refusal, "refusal"
        reply = Reply.at_once(text if text.strip() else "", inputs, self._usage, stop)
        kept = {name: "".join(self._thoughts[name]) for name in THOUGHTS if name in self._thoughts}
        item: dict[str, Any] = dict(list(kept.items())[:1])
        if details := [{**rest, **_joined(texts)} for rest, texts in self._details]:
            item = {"reasoning_details": details}
        sent = [_sent(use.arguments, given, more) for (use, given), (_, more) in zip(inputs, calls, strict=True)]
        if any(unlike for _, unlike in sent):
            item["tool_calls"] = [call for call, _ in sent]
        if not item:
            return reply
        return msgspec.structs.replace(reply, origin=ReplyOrigin("", "", FORMAT_NAME, [item]))

    def _take(self, choice: dict[str, Any]) -> None:
        if choice.get("error"):
            raise reported_error(choice)
        match choice:
            case {"delta": dict(delta)}:
                self._extend(delta)
            case {"message": dict(whole)}:
                self._extend(whole)
                self._finish = self._finish or "stop"
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            if reason in _FAILED:
                raise ModelError(_FAILED[reason], f"the reply ends with {reason!r}")
            self._finish = reason

    def _extend(self, delta: dict[str, Any]) -> None:
        self._think(delta)
        for kind, piece in _pieces(delta.get("content")):
            self._tell(self._tagged.take(piece) if kind == "text" else [ThoughtDelta(piece)])
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refusal.append(refusal)
            self._show(TextDelta(refusal))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else [calls]:
            self._calls.take(call)
        self._calls.take(delta.get("function_call"))

    def _tell(self, told: Iterable[TextDelta | ThoughtDelta]) -> None:
        for each in told:
            if isinstance(each, TextDelta):
                self._text.append(each.text)
            self._show(each)

    def _think(self, delta: dict[str, Any]) -> None:
        told = {name: delta[name] for name in THOUGHTS if isinstance(delta.get(name), str)}
        for name, piece in told.items():
            self._thoughts.setdefault(name, []).append(piece)
        details = delta.get("reasoning_details")
        within = [self._detail(each) for each in details if isinstance(each, dict)] if isinstance(details, list) else []
        if thought := next(filter(None, told.values()), "") or "".join(within):
            self._show(ThoughtDelta(thought))

    def _detail(self, detail: dict[str, Any]) -> str:
        """Take a piece of the reasoning details; return what it says in words."""
        texts = {name: detail[name] for name in _DETAIL_TEXTS if isinstance(detail.get(name), str)}
        rest = {name: value for name, value in detail.items() if name not in texts and value is not None}
        place = (rest.get("type"), rest.get("index"))
        if self._details and place[0] != _UNIQUE_DETAIL and _place(self._details[-1][0]) == place:
            self._details[-1][0].update(rest)
        else:
            self._details.append((rest, {}))
        for name, piece in texts.items():
            self._details[-1][1].setdefault(name, []).append(piece)
        return texts.get("text") or texts.get("summary") or ""


def _place(detail: Mapping[str, Any]) -> tuple[Any, Any]:
    return detail.get("type"), detail.get("index")


def _joined(texts: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: "".join(pieces) for name, pieces in texts.items()}


def _sent(raw: str, given: dict[str, Any], more: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return a call as it goes back to its server, and whether its block says less.

    Arguments go back as they were written, which the server may have kept, unless they are no JSON object.
    """
    plain = msgspec.json.encode(given).decode()
    arguments = raw if given else plain
    return {"function": {"arguments": arguments}, **more}, bool(more) or arguments != plain


def _pieces(content: object) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a content, text or a list of parts: "text" or "thinking", and what it says."""
    match content:
        case str() if content:
            yield "text", content
        case [*parts]:
            for part in parts:
                match part:
                    case str() if part:
                        yield "text", part
                    case {"type": "thinking", "thinking": within}:
                        yield from (("thinking", piece) for _, piece in _pieces(within))
                    case {"text": str(text)} if text:
                        yield "text", text


def _counted(usage: Mapping[str, Any]) -> Usage:
    """Return token counts by the Messages API's names.

    Of the total, all is output that was no prompt: what xAI and Gemini count of a reply lacks its thinking.
    """
    reads = _within(usage, "prompt_tokens_details", ["cached_tokens"])
    reads += [usage.get(name) for name in ("prompt_cache_hit_tokens", "cached_tokens")]
    read = _count(reads)
    written = _count(_within(usage, "prompt_tokens_details", ["cache_write_tokens", "cache_creation_tokens"]))
    reasoning = _count(_within(usage, "completion_tokens_details", ["reasoning_tokens"]))
    prompt, total = (_count([usage.get(name)]) for name in ("prompt_tokens", "total_tokens"))
    counted = {
        "input_tokens": max(prompt - read - written, 0),
        "output_tokens": max(_count([usage.get("completion_tokens")]), total - prompt if prompt else 0),
    }
    if any(type(each) is int for each in reads):  # none is told as well
        counted["cache_read_input_tokens"] = read
    more = {"cache_creation_input_tokens": written, "reasoning_tokens": reasoning}
    return counted | {name: count for name, count in more.items() if count}


def _within(usage: Mapping[str, Any], holder: str, names: Iterable[str]) -> list[Any]:
    details = usage.get(holder)
    return [details.get(name) for name in names] if isinstance(details, dict) else []


def _count(values: Iterable[Any]) -> int:
    """Return the first of the values that is a count."""
    return next((value for value in values if type(value) is int and value > 0), 0)
