"""The tool write_file.

Rule: the whole file at once, or nothing. A file that has this very text already is left alone.
"""

from typing import Annotated

from msgspec import Meta

from workers.changes.diff import TEXT
from workers.changes.digest import sha256
from workers.files.proposal import FileProposal, proposed
from workers.files.seen_file import look
from workers.files.text_limits import bytes_of
from workers.tool import Args, Result, ToolContext, tool
from workers.tree.parent_dir import looking
from workers.tree.root import shown


class WriteFileArgs(Args, frozen=True):
    """The arguments of write_file."""

    path: Annotated[str, Meta(description="The file, relative to the root: notes/idea.md")]
    content: Annotated[str, Meta(description="The whole new text, at most 4 MiB.")]


@tool(WriteFileArgs, effect=True, kind="edit", subject="path", profiles=("vault", "project", "code"))
def write_file(args: WriteFileArgs, context: ToolContext) -> Result | FileProposal:
    """Write a UTF-8 text file beneath the root: a new one, or in place of the old one, at once.

    Missing parent directories are made. Symbolic links are never written through. Files from which other
    programs take commands (.git, .envrc, .vscode, shell start-up files and the like) are refused, or asked about.
    """
    data = bytes_of(args.content, "content")
    with looking(context.root, args.path) as place:
        old = look(place, TEXT)
        if old is not None and old.size == len(data) and old.digest == sha256(data).digest():
            return f"{shown(place.path)} has these {len(data)} bytes already (unchanged)."
        said = f"Wrote {len(data)} bytes to {shown(place.path)} ({'new file' if old is None else 'replaced'})."
        return proposed(context.root, place, data, old, said)
