"""A real worker with a category of its own: the real runtime, wire and files confinement, and tools that do nothing."""

import os
import sys
import time
from typing import Annotated, Final

from msgspec import Meta

from workers.__main__ import run
from workers.catalog import Category
from workers.confine.confinements import FILES
from workers.tool import Args, ToolContext, tool

MAIN: Final = "from scripts.benchmarks.worker import main; main()"
"""For `supervisor.pool.spec.worker_command`; this module imports nothing of the supervisor, as no worker does."""


class EchoArgs(Args, frozen=True):
    text: Annotated[str, Meta(description="What to return.")]


class LargeArgs(Args, frozen=True):
    size: Annotated[int, Meta(description="Characters to return.")]


class HangArgs(Args, frozen=True):
    pass


@tool(EchoArgs, effect=False)
def echo(args: EchoArgs, context: ToolContext) -> str:  # noqa: ARG001 - every tool is given its context
    """Return the text."""
    return args.text


@tool(LargeArgs, effect=False)
def large(args: LargeArgs, context: ToolContext) -> str:  # noqa: ARG001
    """Return a text of that size."""
    return "x" * args.size


@tool(HangArgs, effect=True)
def hang(args: HangArgs, context: ToolContext) -> str:  # noqa: ARG001
    """Never return."""
    while True:
        time.sleep(3600)


def main() -> None:
    """Run as `workers.__main__.main` does, with the other table."""
    os._exit(run(int(sys.argv[-1]), {"bench": Category("bench", (echo, large, hang), lambda: FILES)}))
