"""The tool read_skill: the text of a skill, a folder of instructions and scripts that is kept for a kind of work.

Rule: no worker runs it alone, for the person's own lie in no root: the supervisor does (`supervisor/tools/skills.py`),
and lets a worker read those of the root. Here stands what the model is told of it.
"""

from typing import Annotated

from msgspec import Meta

from workers.errors import ToolError
from workers.tool import Args, ToolContext, tool


class ReadSkillArgs(Args, frozen=True):
    """The arguments of read_skill."""

    name: Annotated[str, Meta(description="Of the skill, as it is listed.", max_length=64)]
    file: Annotated[str, Meta(description="Of its folder, where its text names one.", max_length=1000)] = "SKILL.md"


@tool(ReadSkillArgs, effect=False, kind="read", subject="name", profiles=("vault", "project", "code", "operator"))
def read_skill(_args: ReadSkillArgs, _context: ToolContext) -> str:
    """Read a skill before you do work of its kind: how this person wants it done. The skills there are were listed.

    A note says where its folder is; scripts in it run as any command.
    """
    raise ToolError("worker_unavailable", "No worker has the skills.")
