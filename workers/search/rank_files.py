"""The tool rank_files: files by a few letters of their paths, for a person who types one."""

from typing import Annotated

from msgspec import Meta

from workers.tool import Args, Result, ToolContext, tool


class RankFilesArgs(Args, frozen=True):
    """The arguments of rank_files."""

    typed: Annotated[str, Meta(description='Letters of the path, in this order; "" for any.', max_length=256)]
    most: Annotated[int, Meta(ge=1, le=200, description="Paths to return at most.")] = 20


@tool(RankFilesArgs, effect=False, kind="search", subject="typed", offered=False)
def rank_files(args: RankFilesArgs, context: ToolContext) -> Result:
    """Find the regular files whose paths have some letters, the best first, without what .gitignore excludes.

    Hidden names are found where a component of what was typed starts with a dot.
    """
    engine, deadline = context.engine, context.engine.deadline(context.queued_s)
    result: Result = engine.known.first(engine.program, engine.jobs, args.typed, args.most, deadline)
    return result
