"""The tool undo.

Rule: only what is sent; the work is the engine's, which the category's `prepare` has made.
"""

from typing import Annotated

from msgspec import Meta

from workers.tool import Args, Proposal, Result, ToolContext, tool


class UndoArgs(Args, frozen=True):
    """The arguments of undo."""

    pack: Annotated[
        str,
        Meta(
            description="Name of the pack that was kept of the call.",
            max_length=255,
            pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*\Z",
        ),
    ]
    force: Annotated[bool, Meta(description="Also what has changed since, and without what was not kept.")] = False


@tool(UndoArgs, effect=True, offered=False)
def undo(args: UndoArgs, context: ToolContext) -> Result | Proposal:
    """Restore what a call replaced, changed or removed, and remove what it added."""
    answer: Result | Proposal = context.engine.undo(context.root, args.pack, force=args.force)
    return answer
