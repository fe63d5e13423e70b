"""The tool plan: what the agent is about to do, for the person to read.

Rule: it does nothing but check; whoever shows the plan takes it from the call. Each call replaces the plan before.
"""

from typing import Annotated, Literal

from msgspec import Meta

from workers.tool import Args, ToolContext, tool


class PlanStep(Args, frozen=True):
    """One step."""

    content: Annotated[str, Meta(description="What is to be done, in a few words.", min_length=1, max_length=500)]
    status: Annotated[
        Literal["pending", "in_progress", "completed"], Meta(description="How far it is; one at a time is in progress.")
    ] = "pending"
    priority: Annotated[Literal["high", "medium", "low"], Meta(description="How much depends on it.")] = "medium"


class PlanArgs(Args, frozen=True):
    """The arguments of plan."""

    entries: Annotated[tuple[PlanStep, ...], Meta(description="All steps, in their order.", max_length=100)]


@tool(PlanArgs, effect=False, kind="think", private=False, profiles=("code",))
def plan(args: PlanArgs, _context: ToolContext) -> str:
    """Show the person your plan for this turn, whole, with how far each step is.

    Use it for work of several steps, and send it anew whenever a step begins or is done. It changes nothing.
    """
    done = sum(entry.status == "completed" for entry in args.entries)
    return f"The plan is shown: {done} of {len(args.entries)} done."
