"""The tool read_file.

Rule: the whole text, or a range of lines of it; never more than `READ_LIMIT` bytes, and never a part without
saying so. An image or a document is told by its content, and handed on whole: nothing here decodes it.
"""

import os
from typing import Annotated

from msgspec import Meta

from workers.errors import ToolError
from workers.files.line_range import LineReader
from workers.files.text_limits import READ_LIMIT, pieces, text_of
from workers.tool import Args, ContentResult, Result, ToolContext, tool
from workers.tree.root import shown
from workers.wire.media_types import HEAD, MEDIA_LIMIT, NAMES, claimed_by, type_of


class ReadFileArgs(Args, frozen=True):
    """The arguments of read_file."""

    path: Annotated[str, Meta(description="The file, relative to the root: notes/idea.md")]
    offset: Annotated[int, Meta(ge=1, description="First line to return, counted from 1.")] | None = None
    limit: Annotated[int, Meta(ge=1, description="How many lines to return at most.")] | None = None


@tool(
    ReadFileArgs,
    effect=False,
    kind="read",
    subject="path",
    profiles=("vault", "project", "code", "operator", "librarian"),
)
def read_file(args: ReadFileArgs, context: ToolContext) -> Result:
    """Read a UTF-8 text file beneath the root and return its text unchanged; or look at an image or a PDF.

    Without offset and limit the whole text, up to 2 MiB; with them those lines, from a file of any size. A PNG, JPEG,
    GIF, WebP or PDF of up to 7.5 MiB is shown as it is.
    """
    with context.root.open_file(args.path) as (file, status):
        if args.offset is not None or args.limit is not None:
            return LineReader(file, args.path).read(args.offset or 1, args.limit)
        data = b"" if status.st_size > READ_LIMIT else b"".join(pieces(file, READ_LIMIT + 1))
        if media_type := type_of(data or os.pread(file, HEAD, 0)):
            return _content(file, status.st_size, media_type, args.path)
        if claimed := claimed_by(args.path):
            raise _no_content(args.path, claimed)
        size = max(status.st_size, len(data))
        if size > READ_LIMIT:
            raise ToolError(
                "too_large",
                f'"{shown(args.path)}" has {size} bytes; at most {READ_LIMIT} are returned at once. '
                "Read a part with offset and limit (in lines): offset=1, limit=1000, then offset=1001.",
                path=shown(args.path),
                size=size,
                limit=READ_LIMIT,
            )
        return text_of(data, args.path)


def _content(file: int, size: int, media_type: str, path: str) -> ContentResult:
    """Return an image or a document, with its type; whether it is one is for others to find out.

    Raises:
        ToolError: `too_large`.
    """
    data = b"" if size > MEDIA_LIMIT else b"".join(pieces(file, MEDIA_LIMIT + 1))
    if max(size, len(data)) > MEDIA_LIMIT:
        message = (
            f'"{shown(path)}" is a {NAMES[media_type]} of {size} bytes; at most {MEDIA_LIMIT} can be looked at. '
            "Use a smaller copy of it."
        )
        raise ToolError("too_large", message, path=shown(path), size=size, limit=MEDIA_LIMIT)
    return ContentResult(media_type, data)


def _no_content(path: str, claimed: str) -> ToolError:
    message = (
        f'"{shown(path)}" is no {NAMES[claimed]}, whatever its name says. If it is text, read its lines: offset=1.'
    )
    return ToolError("not_text", message, path=shown(path))
