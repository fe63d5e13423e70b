"""The tool rewind.

Rule: as `undo`, of several calls as if they were one; what others have changed is left, and named.
"""

from typing import Annotated

from msgspec import Meta

from workers.tool import Args, Proposal, Result, ToolContext, tool


class RewindArgs(Args, frozen=True):
    """The arguments of rewind."""

    packs: Annotated[
        tuple[Annotated[str, Meta(max_length=255, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")], ...],
        Meta(description="Names of the packs that were kept of the calls, the last call first.", min_length=1),
    ]
    look: Annotated[bool, Meta(description="Only tell what would be changed, and what would be left.")] = False


@tool(RewindArgs, effect=True, offered=False)
def rewind(args: RewindArgs, context: ToolContext) -> Result | Proposal:
    """Take back what several calls have changed, but for what others have changed since, or in between."""
    answer: Result | Proposal = context.engine.rewind(context.root, args.packs, look=args.look)
    return answer
