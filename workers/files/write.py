"""The tool write_file.

Rule: the whole file at once, or nothing.
"""

from typing import Annotated

from msgspec import Meta

from workers.files.atomic import replace
from workers.files.place import writing
from workers.files.text import bytes_of
from workers.paths import shown
from workers.tool import Args, Result, Room, tool


class WriteFileArgs(Args, frozen=True):
    """The arguments of write_file."""

    path: Annotated[str, Meta(description="The file, relative to the root: notes/idea.md")]
    content: Annotated[str, Meta(description="The whole new text, at most 4 MiB.")]


@tool(WriteFileArgs, effect=True)
def write_file(args: WriteFileArgs, room: Room) -> Result:
    """Write a UTF-8 text file beneath the root: a new one, or in place of the old one, at once.

    Missing parent directories are made. Symbolic links are never written through. Files from which other
    programs take commands (.git, .envrc, .vscode, shell start-up files and the like) are refused.
    """
    data = bytes_of(args.content, "content")
    with writing(room.root, args.path, make_parents=True) as place:
        replaced = replace(room.root, place, data)
    return f"Wrote {len(data)} bytes to {shown(place.path)} ({'replaced' if replaced else 'new file'})."
