"""The tool find_files: names that match a pattern, without what .gitignore excludes."""

from typing import Annotated

from msgspec import Meta

from workers.tool import Args, Result, ToolContext, tool


class FindFilesArgs(Args, frozen=True):
    """The arguments of find_files."""

    pattern: Annotated[
        str, Meta(description="Glob relative to the root, such as **/*.md or src/*.{py,toml}; ** is any depth.")
    ]


@tool(FindFilesArgs, effect=False, kind="search", subject="pattern", profiles=("librarian",))
def find_files(args: FindFilesArgs, context: ToolContext) -> Result:
    """Find the regular files that match a glob pattern and that .gitignore does not exclude, as sorted paths.

    `*`, `?` and `[...]` stay within one name, `**` is any depth, `{a,b}` is either. Hidden names match only where the
    pattern's component starts with a dot. Symbolic links are left out. The first 2000 are returned.
    """
    from workers.search.file_listing import find

    return find(context.engine, args.pattern, context.engine.deadline(context.queued_s))
