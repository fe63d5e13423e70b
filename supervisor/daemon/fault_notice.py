"""A daemon with a fault plan says so: in the journal, and in the log.

Rule: before any worker is started. Whoever reads later why workers failed finds the plan's path and digest.
"""

import logging
import os
import secrets
from typing import Final

from supervisor.config.fault_plan import FaultPlan
from supervisor.journal.facts import FaultsAllowed
from supervisor.journal.journal import Journal

_log: Final = logging.getLogger("strongroom.daemon")


def announce(plan: FaultPlan, journal: Journal) -> None:
    """Record that there will be faults, and log it.

    Raises:
        JournalError: it cannot be recorded.
    """
    session = f"faults-{secrets.token_hex(8)}"
    path = os.fsencode(plan.file).decode("utf-8", "backslashreplace")  # the journal holds nothing but Unicode
    journal.append(session, FaultsAllowed(path, plan.digest, plan.seed))
    _log.warning("FAULT INJECTION IS ON: workers fail as %s says", plan)
