"""Changes of others: what conversations beside this one, and people's own calls, have committed on the same root.

Rule: the journal says so, whoever wrote it and in which process. It is asked only where a loop would be told of; so is
the root, for what other programs have changed (`changed_since.py`).
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final

import msgspec
import trio

from supervisor.agent.loop_counter import may_have_changed
from supervisor.errors import WorkerError
from supervisor.journal.facts import CallDecided, CallEnded, SessionChanged, SessionOpened
from supervisor.journal.journal import JournalEntry, open_journal
from supervisor.pool.pools import Pools
from supervisor.tools.catalog import unoffered
from workers.wire import messages

_CHANGED: Final = "changed_since"
_LOOK_S: Final = 5.0
"""Seconds that the look at a root takes at most; a worker looks at 500,000 inodes in them."""


async def root_changed(pools: Pools, since: float) -> bool:
    """Say whether anything beneath the root was changed after a moment, by whatever program.

    Where no worker says so, or not in time, it is not known to have changed; nor where the caller is cancelled, who has
    a call's end to record before anything else.
    """
    offer, arguments = unoffered(_CHANGED), msgspec.json.encode({"since": since})
    with suppress(WorkerError, trio.Cancelled), trio.move_on_after(_LOOK_S):
        answer = await pools.pool(offer.category).call(_CHANGED, arguments, effect=False)
        return isinstance(answer, messages.Done) and answer.content == "yes"
    return False


def changed_by_others(path: Path, session: str, call: str) -> tuple[bool, float]:
    """Say whether others have changed a session's root, or what is around or beneath it, since one of its calls ended.

    And when that was, in seconds since 1970.

    Reads the journal at `path`, so it should run in a thread.

    Raises:
        JournalError: it cannot be read.
    """
    with open_journal(path) as journal:
        own = journal.of_session(session)
        ended = (each for each in reversed(own) if isinstance(each.fact, CallEnded) and each.fact.call == call)
        first, last = next(ended, own[0]), journal.last()
        others = {
            other
            for _, other, fact in journal.commits(first.seq, last)
            if other != session and isinstance(fact, CallDecided) and (fact.undoes or may_have_changed(fact))
        }
        root = _root(own)
        return any(_overlap(root, _root(journal.of_session(other))) for other in others), first.at


def _root(entries: Sequence[JournalEntry]) -> str:
    """Return the root that a session has now, or had last; "" where it had none."""
    opened = (each.fact for each in reversed(entries) if isinstance(each.fact, SessionOpened | SessionChanged))
    return next((fact.context.working_directory for fact in opened), "")


def _overlap(root: str, other: str) -> bool:
    return PurePath(root).is_relative_to(other) or PurePath(other).is_relative_to(root)
