"""The tool search_files: a regular expression or a text, looked for in all files."""

from typing import Annotated

from msgspec import Meta

from workers.tool import Args, Result, ToolContext, tool


class SearchFilesArgs(Args, frozen=True):
    """The arguments of search_files."""

    query: Annotated[str, Meta(description="A regular expression in Rust's syntax, case-sensitive: fn \\w+_test")]
    glob: (
        Annotated[
            str,
            Meta(description="Only files that match: *.py or *.{c,h} at any depth, src/**/*.py relative to the root."),
        ]
        | None
    ) = None
    literal: Annotated[bool, Meta(description="Look for the query as it stands: no regular expression.")] = False


@tool(SearchFilesArgs, effect=False, kind="search", subject="query", profiles=("vault", "project", "code", "librarian"))
def search_files(args: SearchFilesArgs, context: ToolContext) -> Result:
    """Search the text files beneath the root, line by line, for a regular expression or a literal text.

    Returns [{"path", "line", "text"}], the first 100 by path and line. What .gitignore excludes, hidden and binary
    files are skipped, links not followed; a glob's component that starts with a dot takes hidden names. In a glob `*`,
    `?` and `[...]` stay within one name, `**` is any depth, `{a,b}` is either. Long lines are cut around the first
    match. (?i) at the beginning of the query ignores case.
    """
    from workers.search.text_search import search

    searcher = context.engine
    return search(searcher, args.query, args.glob, literal=args.literal, deadline=searcher.deadline(context.queued_s))
