"""The tool settle.

Rule: only what is sent; the work is the engine's, which the category's `prepare` has made.
"""

from typing import Annotated

from msgspec import Meta

from workers.changes.effects import Change
from workers.tool import Args, Result, ToolContext, tool


class SettleArgs(Args, frozen=True):
    """The arguments of settle."""

    number: Annotated[int, Meta(description="Of the call, by which its commit is known.")]
    pack: Annotated[str, Meta(description="Name of the pack that was kept of the call; empty if none was.")]
    changes: Annotated[tuple[Change, ...], Meta(description="What the call was to change, or the first of it.")]


@tool(SettleArgs, effect=True, offered=False)
def settle(args: SettleArgs, context: ToolContext) -> Result:
    """Take back a commit that was killed, unless it was complete, and tell what there is now."""
    answer: Result = context.engine.settle(context.root, args.number, args.pack, args.changes)
    return answer
