"""The parts of a prompt: blocks of the protocol as the model is shown them. Pure."""

import re
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

_UNFIT_LABEL: Final = re.compile(r"[^\w .,@+~/-]")
"""What a label of a link may not have, or it could end it, or stand on a line of its own."""
_LABEL: Final = 200
_UNFIT_ADDRESS: Final = re.compile(r"[^!-~]|[()<>\[\]\\\"'`]")
_MARK: Final = 16
"""Hexadecimal digits of a digest in the frame of a file: to hold its own one, a file would be made 2^63 times."""
_EDGES: Final = re.compile(
    r"<resource uri=('[^'\n]*'|\"[^\"\n]*\") id=([0-9a-f]{16})>\n|\n</resource id=([0-9a-f]{16})>"
)
"""Where the frame of a file begins, or ends; other text may have such lines, too."""
_LOOKS: Final = 64
"""Frames of one prompt that are compared with their digests: the texts between them may be long."""


class PromptPart(NamedTuple):
    """A part of a prompt, as the model is shown it; `uri` says where it comes from, "" where the person typed it.

    An image or a document has no text, but its `data` in base64. A link to one has a `media_type` alone.
    """

    text: str
    uri: str = ""
    data: str = ""
    media_type: str = ""


def prompt_parts(blocks: list[dict[str, Any]]) -> list[PromptPart]:
    """Return a prompt as parts that together are the text that the model is asked.

    Text stays as it is; an embedded text resource stands under its address, in a frame with a digest of it, so that
    nothing in it can end the frame; a link stays a link, for the agent to read with its own tools. Images and documents
    are parts without a text.

    Raises:
        ValueError: a block that this agent does not take (it announces no audio).
    """
    parts = [_part(number, block) for number, block in enumerate(blocks, 1)]
    last = max((at for at, part in enumerate(parts) if not part.data), default=0)
    return [
        part if part.data or at == last else part._replace(text=f"{part.text}\n\n") for at, part in enumerate(parts)
    ]


def _part(number: int, block: dict[str, Any]) -> PromptPart:
    match block:
        case {"type": "text", "text": str(text)}:
            return PromptPart(text)
        case {"type": "resource_link", "uri": str(uri)}:
            label = _UNFIT_LABEL.sub("_", str(block.get("name") or "file"))[:_LABEL]
            text = f"[{label}]({_UNFIT_ADDRESS.sub(_percent, uri)})"
            from workers.wire.media_types import claimed_by  # which few need

            return PromptPart(text, uri or "?", media_type=claimed_by(uri))
        case {"type": "image", "data": str(data), "mimeType": str(media_type)} if data:
            return PromptPart("", str(block.get("uri") or "image"), data, media_type)
        case {"type": "resource", "resource": {"blob": str(data), "uri": str(uri), "mimeType": str(kind)}} if data:
            return PromptPart("", uri or "?", data, kind)
        case {"type": "resource", "resource": {"text": str(text), "uri": str(uri)}}:
            mark = _mark_of(uri, text)
            return PromptPart(f"<resource uri={uri!r} id={mark}>\n{text}\n</resource id={mark}>", uri or "?")
        case _:
            raise ValueError(f"block {number} of the prompt has a type that this agent does not take")


def folded(text: str) -> str:
    """Return a prompt for people: of each file that was sent along, its name."""
    begun: dict[str, re.Match[str]] = {}
    shown, end, looks = "", 0, 0
    for edge in _EDGES.finditer(text):
        uri, mark, ended = edge.groups()
        if uri:
            begun.setdefault(mark, edge)
        elif (begin := begun.pop(ended, None)) is not None and begin.start() >= end and looks < _LOOKS:
            looks += 1
            uri = begin[1][1:-1]
            if ended == _mark_of(uri, text[begin.end() : edge.start()]):
                name = unquote(uri.rstrip("/").rpartition("/")[2])
                shown += f"{text[end : begin.start()].rstrip()}\n[{name}]"
                end = edge.end()
    return shown + text[end:]


def _mark_of(uri: str, text: str) -> str:
    """Return what tells the frame of a file from what its text may hold."""
    import hashlib  # which takes 2 ms, and few need it

    return hashlib.sha256(f"{uri}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))
