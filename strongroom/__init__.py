"""Strongroom from Python: `start`, `chat`, `history` and `clear` at a prompt, and `connect` for programs.

    with strongroom.connect(model="offline") as client, client.open(root="vault") as session:
        for event in session.ask("read idea.md"):
            ...

    async with strongroom.connect() as client:  # with asyncio, or with trio
        session = await client.open(root="vault")
        result = await session.run("read idea.md")

In IPython and Jupyter `%load_ext strongroom` adds `%%strongroom`.
"""

from supervisor.acp.extensions import ChangedName, SessionFacts
from supervisor.acp.schema import PlanEntry, SessionInfo, TokenUsage
from supervisor.clients.python.async_client import AsyncClient
from supervisor.clients.python.async_session import AsyncSession, AsyncTurn
from supervisor.clients.python.blocking import BlockingClient as Client
from supervisor.clients.python.blocking import BlockingSession as Session
from supervisor.clients.python.blocking import BlockingTurn as Turn
from supervisor.clients.python.blocking import connect
from supervisor.clients.python.cell_magic import load_ipython_extension as load_ipython_extension
from supervisor.clients.python.repl import chat, clear, history, start
from supervisor.clients.python.typed_events import (
    AnswerPart,
    Approval,
    ConversationCompacted,
    NoticeGiven,
    PlanChanged,
    Question,
    ThoughtPart,
    ToolEnded,
    ToolFailed,
    ToolStarted,
    TurnEvent,
    TurnFailed,
    TurnResult,
)
from supervisor.config.repositories import Names
from supervisor.errors import ConfigError, DaemonLost, DaemonRefused, StrongroomError
from supervisor.journal.receipt import Receipt

__all__ = [
    "AnswerPart",
    "Approval",
    "AsyncClient",
    "AsyncSession",
    "AsyncTurn",
    "ChangedName",
    "Client",
    "ConfigError",
    "ConversationCompacted",
    "DaemonLost",
    "DaemonRefused",
    "Names",
    "NoticeGiven",
    "PlanChanged",
    "PlanEntry",
    "Question",
    "Receipt",
    "Session",
    "SessionFacts",
    "SessionInfo",
    "StrongroomError",
    "ThoughtPart",
    "TokenUsage",
    "ToolEnded",
    "ToolFailed",
    "ToolStarted",
    "Turn",
    "TurnEvent",
    "TurnFailed",
    "TurnResult",
    "chat",
    "clear",
    "connect",
    "history",
    "start",
]


def __dir__() -> list[str]:
    """Return the public names, and nothing else."""
    return __all__
