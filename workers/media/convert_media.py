"""The tool convert_media.

Rule: only what is sent; the work is the engine's, which the category's `prepare` has made.
"""

from typing import Annotated

from msgspec import Meta

from workers.tool import Args, Result, ToolContext, tool
from workers.wire.media_types import NAMES

EDGE = 1568
"""Pixels of an image's longer side, at most: what models look at without scaling it down themselves."""


class ConvertMediaArgs(Args, frozen=True):
    """The arguments of convert_media; the content comes with the call."""

    media_type: Annotated[str, Meta(description="What it claims to be.", pattern=f"^({'|'.join(NAMES)})\\Z")]
    edge: Annotated[int, Meta(ge=64, le=8000, description="Pixels of an image's longer side, at most.")] = EDGE


@tool(ConvertMediaArgs, effect=False, kind="read", offered=False)
def convert_media(args: ConvertMediaArgs, context: ToolContext) -> Result:
    """Check that content is what it claims to be, and return what a model can be shown of it."""
    result: Result = context.engine.convert(context.content, args.media_type, args.edge, context.queued_s)
    return result
