"""The tool list_directory.

Rule: a name is shown as what opening it beneath the root would give. What could not be opened so (a link that
leads out, a FIFO, a socket, a device) is counted, not shown.
"""

import stat
from typing import Annotated, Final

from msgspec import Meta

from workers.files.entries import Kind, entries_of
from workers.tool import Args, Result, ResultWithNote, ToolContext, tool
from workers.tree.root import Root

ENTRIES_LIMIT: Final = 2000
"""Entries that one answer holds."""


class ListDirectoryArgs(Args, frozen=True):
    """The arguments of list_directory."""

    path: Annotated[str, Meta(description="The directory, relative to the root; . is the root itself.")]


@tool(
    ListDirectoryArgs, effect=False, kind="read", subject="path", profiles=("project", "code", "operator", "librarian")
)
def list_directory(args: ListDirectoryArgs, context: ToolContext) -> Result:
    """List the files and directories directly in a directory beneath the root, sorted, also hidden ones.

    Returns [{"name", "kind": "file" or "dir"}]. The first 2000 are returned.
    """
    with context.root.listing(args.path) as directory:
        named, unspeakable, cut = entries_of(directory)
    rows: list[dict[str, str]] = []
    left_out = 0
    remarks: list[str] = []
    for name, what in sorted(named):
        kind = _kind(context.root, f"{args.path}/{name}", what)
        if kind is None:
            left_out += 1
        elif len(rows) == ENTRIES_LIMIT:
            cut = True
            break
        else:
            rows.append({"name": name, "kind": kind})
    if cut:
        remarks.append(f"only the first {ENTRIES_LIMIT} of at least {len(named)} names are listed")
    if left_out:
        remarks.append(f"{left_out} names are left out: links out of the root, FIFOs, sockets or devices")
    if unspeakable:
        remarks.append(f"{unspeakable} names that are not UTF-8 are left out")
    return ResultWithNote(rows, "; ".join(remarks)) if remarks else rows


def _kind(root: Root, path: str, kind: Kind) -> Kind | None:
    if kind == "link":
        mode = root.mode_of(path) or 0
        return "dir" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else None
    return None if kind == "other" else kind
