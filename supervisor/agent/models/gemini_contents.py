"""A conversation as Gemini's contents: turns of a user and of a model, made of parts.

Rule: pure, and the same for the same conversation. A reply that Gemini wrote goes back part by part as it came, with
its signatures; any other is told in the parts that every model knows. The answers to the calls of one content stand in
the next, in their order.

Sources: https://ai.google.dev/api/caching#Content, https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from supervisor.agent.models.model import NO_ANSWER, Block, ModelRequest

Part = dict[str, Any]
Content = dict[str, Any]
"""{"role": "user" | "model", "parts": [Part, ...]}."""

FORMAT_NAME: Final = "gemini"
"""Of the items of a reply, which are its parts."""
_UNSIGNED: Final = "skip_thought_signature_validator"
"""Stands for the signature of a call that another model made: Gemini 3 refuses a content whose first call has none."""
_SIGNED_SINCE: Final = (3, 0)
_FAMILY: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_NEWEST: Final = (3, 0)
"""The version of a name that tells none: gemini-flash-latest."""
_NO_GEMINI: Final = (0, 0)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.:-]")
_NAME_LIMIT: Final = 128
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


class _Answered(NamedTuple):
    """What the answer to a call must repeat of it."""

    name: str
    id: str
    """Empty where the call has none."""


def contents(request: ModelRequest, provider: str, model: str) -> list[Content]:
    """Return the contents of a request.

    Args:
        request: with its messages, their origins and the media that they name.
        provider: whose own replies go back as they came.
        model: as the server calls it; the newer ones refuse calls without a signature.
    """
    signed = version_of(model) >= _SIGNED_SINCE
    told: list[Content] = []
    answered: dict[str, _Answered] = {}
    for index, message in enumerate(request.messages):
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if message["role"] == "assistant":
            role, origin = "model", request.origins.get(index)
            own = origin is not None and origin.format == FORMAT_NAME and origin.provider == provider
            sent = _as_sent(origin.items, blocks) if own and origin else None
            parts = _of_a_reply(blocks) if sent is None else sent
            _note_calls(blocks, parts, answered)
            parts = _signed(parts) if signed else parts
        else:
            role, parts = "user", _of_a_user(blocks, answered, request.media)
        if told and told[-1]["role"] == role:
            told[-1] = {"role": role, "parts": [*told[-1]["parts"], *parts]}
        else:
            told.append({"role": role, "parts": parts})
    if told and told[0]["role"] == "model":
        told.insert(0, {"role": "user", "parts": [{"text": "(What was said here cannot be read any more.)"}]})
    return told


def version_of(model: str) -> tuple[int, int]:
    """Return the version of Gemini that a model's name tells."""
    if found := _FAMILY.search(model):
        return int(found[1]), int(found[2] or 0)
    return _NEWEST if FORMAT_NAME in model else _NO_GEMINI


def function_name(name: str) -> str:
    """Return a tool's name in the letters that Gemini takes."""
    if _NAME.fullmatch(name):
        return name
    spelled = _NOT_IN_NAMES.sub("_", name)
    return (spelled if spelled[:1].isalpha() or spelled[:1] == "_" else f"_{spelled}")[:_NAME_LIMIT]


def _as_sent(items: Sequence[Part], blocks: Sequence[Block]) -> list[Part] | None:
    """Return a reply's parts as they came, with the ids that its calls have here; None where they cannot be sent.

    Of very many calls only the first were kept, and only those have an answer.
    """
    calls = [block for block in blocks if block["type"] == "tool_use"]
    parts: list[Part] = []
    told = 0
    for item in items:
        part = item
        if (sent := part.get("functionCall")) is not None:
            if told == len(calls):
                continue
            call, told = calls[told], told + 1
            again = {"name": function_name(call["name"])} | ({"id": call["id"]} if sent.get("id") else {})
            if any(sent.get(key) != value for key, value in again.items()):
                part = {**part, "functionCall": {**sent, **again}}
        parts.append(part)
    says_something = any("functionCall" in part or (part.get("text") and not part.get("thought")) for part in parts)
    return parts if says_something and told == len(calls) else None


def _of_a_reply(blocks: Iterable[Block]) -> list[Part]:
    """Return the parts of a reply that another model wrote, without its thinking."""
    parts: list[Part] = []
    for block in blocks:
        match block["type"]:
            case "text":
                parts.append({"text": block["text"]})
            case "tool_use":
                name = function_name(block["name"])
                parts.append({"functionCall": {"id": block["id"], "name": name, "args": block["input"]}})
            case other if other not in _THINKING:
                parts.append({"text": f"({other})"})
    return parts or [{"text": NO_ANSWER}]


def _note_calls(blocks: Iterable[Block], parts: Iterable[Part], answered: dict[str, _Answered]) -> None:
    """Note what the answers to a reply's calls must repeat."""
    sent = [part["functionCall"] for part in parts if "functionCall" in part]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    for call, of in zip(calls, sent, strict=True):
        answered[call] = _Answered(of["name"], of.get("id") or "")


def _signed(parts: list[Part]) -> list[Part]:
    """Return the parts with a signature on the first call, where its model signed none."""
    first = next((index for index, part in enumerate(parts) if "functionCall" in part), None)
    if first is None or parts[first].get("thoughtSignature"):
        return parts
    return [*parts[:first], {**parts[first], "thoughtSignature": _UNSIGNED}, *parts[first + 1 :]]


def _of_a_user(blocks: Iterable[Block], answered: Mapping[str, _Answered], media: Mapping[str, str]) -> list[Part]:
    """Return the parts of what a user says: the answers to calls, then what these brought along, then the rest."""
    answers: list[Part] = []
    brought: list[Part] = []
    said: list[Part] = []
    for block in blocks:
        match block["type"]:
            case "tool_result":
                text, others = _result(block["content"], media)
                of = answered.get(block["tool_use_id"], _Answered("_", block["tool_use_id"]))
                response = {"error" if block.get("is_error") else "output": text}
                same = {"id": of.id} if of.id else {}
                answers.append({"functionResponse": {**same, "name": of.name, "response": response}})
                brought += others
            case "text":
                said.append({"text": block["text"]})
            case _:
                said.append(_medium(block, media))
    return [*answers, *brought, *said]


def _result(content: str | Sequence[Block], media: Mapping[str, str]) -> tuple[str, list[Part]]:
    """Return the text of a call's outcome, and what is no text in it."""
    if isinstance(content, str):
        return content, []
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    return text, [_medium(block, media) for block in content if block["type"] != "text"]


def _medium(block: Block, media: Mapping[str, str]) -> Part:
    """Return the part of an image or a document; where its content is not at hand, a word for it."""
    match block:
        case {"source": {"digest": str(digest), "media_type": str(media_type)}} if digest in media:
            return {"inlineData": {"mimeType": media_type, "data": media[digest]}}
        case {"type": str(kind), "source": {"media_type": str(media_type)}}:
            return {"text": f"({kind}: {media_type})"}
        case _:
            return {"text": f"({block['type']})"}
