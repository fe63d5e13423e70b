"""The tool edit_file.

Rule: one exact, unique replacement in the file that was read; if somebody else changed it in between, nothing
is written.
"""

import errno
from typing import Annotated

from msgspec import Meta

from workers.errors import ToolError
from workers.files.proposal import FileProposal, proposed
from workers.files.seen_file import Old, look
from workers.files.text_limits import WRITE_LIMIT, bytes_of, text_of
from workers.tool import Args, Result, ToolContext, tool
from workers.tree.parent_dir import ParentDir, looking
from workers.tree.root import shown


class EditFileArgs(Args, frozen=True):
    """The arguments of edit_file."""

    path: Annotated[str, Meta(description="The file, relative to the root: notes/idea.md")]
    old: Annotated[str, Meta(description="The exact text to replace; it must occur exactly once.")]
    new: Annotated[str, Meta(description="The text to put in its place; may be empty.")]


@tool(EditFileArgs, effect=True, kind="edit", subject="path", profiles=("vault", "project", "code"))
def edit_file(args: EditFileArgs, context: ToolContext) -> Result | FileProposal:
    """Replace one exact piece of text in a file beneath the root, which must occur in it exactly once.

    White space and line ends count. Give enough surrounding lines in `old` to make it unique.
    """
    old, new = bytes_of(args.old, "old"), bytes_of(args.new, "new")
    if not old:
        raise ToolError("invalid_arguments", "old is empty. Give the text to replace, or use write_file.")
    if old == new:
        raise ToolError("invalid_arguments", "old and new are the same: there is nothing to change.")
    with looking(context.root, args.path) as place:
        there = look(place, WRITE_LIMIT)
        data = _content(place, there)
        at = _find(data, old, place.path)
        result = data[:at] + new + data[at + len(old) :]
        if len(result) > WRITE_LIMIT:
            raise _too_large(place, len(result))
        line = data.count(b"\n", 0, at) + 1
        said = f"Edited {shown(place.path)} at line {line}: {len(data)} bytes before, {len(result)} now."
        return proposed(context.root, place, result, there, said)


def _content(place: ParentDir, there: Old | None) -> bytes:
    if there is None:
        raise FileNotFoundError(errno.ENOENT, "no such file")
    if there.size > WRITE_LIMIT:
        raise _too_large(place, there.size)
    if there.content is None:
        raise PermissionError(errno.EACCES, "not readable")
    text_of(there.content, place.path)
    return there.content


def _find(data: bytes, old: bytes, path: str) -> int:
    """Return where `old` stands in `data`.

    Raises:
        ToolError: `no_match` unless it stands there exactly once.
    """
    at = data.find(old)
    if at < 0:
        raise ToolError("no_match", f'old does not occur in "{shown(path)}". {_hint(data, old)}', path=shown(path))
    if data.find(old, at + 1) >= 0:
        count = max(2, data.count(old))
        message = (
            f'old occurs {count} times in "{shown(path)}"; nothing was changed. '
            "Give more of the surrounding lines in old, and in new, so that it is unique."
        )
        raise ToolError("no_match", message, path=shown(path), count=count)
    return at


def _hint(data: bytes, old: bytes) -> str:
    if b"\n" in old and (old.replace(b"\r\n", b"\n") in data or old.replace(b"\n", b"\r\n") in data):
        return "It would with other line ends: the file and old differ in LF and CRLF."
    if old.strip() and old.strip() in data:
        return "It would without the white space at its ends: copy it exactly."
    return "Read the file and copy the text exactly, with its white space and line ends."


def _too_large(place: ParentDir, size: int) -> ToolError:
    message = f'"{shown(place.path)}" has or would have {size} bytes; at most {WRITE_LIMIT} can be edited.'
    return ToolError("too_large", message, path=shown(place.path), size=size, limit=WRITE_LIMIT)
