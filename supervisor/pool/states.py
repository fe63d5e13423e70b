"""The states of a worker, and the way in which one says that it will not serve. Imports nothing of the pool."""

from enum import Enum
from typing import NamedTuple


class WorkerState(Enum):
    """The states of one worker, in OTP's spirit; the vocabulary of `status`."""

    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    BACKOFF = "backoff"
    FAILED = "failed"
    STOPPED = "stopped"


class ConfinementRefusal(NamedTuple):
    """The worker cannot be confined; starting it again at once would not help."""

    missing: str
    message: str

    def __str__(self) -> str:
        return f"refused to serve without {self.missing}: {self.message}"
