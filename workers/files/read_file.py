"""The tool read_file.

Rule: the whole text, or a range of lines of it; never more than `READ_LIMIT` bytes, and never a part without
saying so.
"""

from typing import Annotated

from msgspec import Meta

from workers.errors import ToolError
from workers.files.line_range import LineReader
from workers.files.text_limits import READ_LIMIT, pieces, text_of
from workers.tool import Args, Result, ToolContext, tool
from workers.tree.root import shown


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
    """Read a UTF-8 text file beneath the root and return its text unchanged.

    Without offset and limit the whole text, up to 2 MiB; with them those lines, from a file of any size.
    """
    with context.root.open_file(args.path) as (file, status):
        if args.offset is not None or args.limit is not None:
            return LineReader(file, args.path).read(args.offset or 1, args.limit)
        data = b"" if status.st_size > READ_LIMIT else b"".join(pieces(file, READ_LIMIT + 1))
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
