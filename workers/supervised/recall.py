"""The tool recall: what was said and found earlier in the same session.

Rule: no worker runs it, for none has the journal: the supervisor does (`supervisor/tools/session_recall.py`), of this
session alone. Here stands what the model is told of it.
"""

from typing import Annotated

from msgspec import Meta

from workers.errors import ToolError
from workers.tool import Args, ToolContext, tool


class RecallArgs(Args, frozen=True):
    """The arguments of recall."""

    query: Annotated[
        str, Meta(description="The rarest words that must have been there: names, numbers, paths.", max_length=1000)
    ] = ""
    call: Annotated[str, Meta(description="Instead: the id of a call whose outcome you want.", max_length=200)] = ""
    offset: Annotated[int, Meta(description="With call: the character to read on from.", ge=0)] = 0


@tool(
    RecallArgs,
    effect=False,
    kind="search",
    subject="query",
    profiles=("vault", "project", "code", "operator", "librarian"),
)
def recall(_args: RecallArgs, _context: ToolContext) -> str:
    """Look up what was said and found earlier in this conversation, also what you are no longer shown.

    With `query` the passages that fit best come, each with its turn and its call's id; with `call` all of that call's
    outcome.
    """
    raise ToolError("worker_unavailable", "No worker has the journal.")
