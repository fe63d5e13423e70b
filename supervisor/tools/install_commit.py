"""The commit of an approved install, and what it hands on to caches of package managers.

Rule: what is handed on is staged while the worker holds the rehearsal, and moved in once its changes are committed. An
install beside which something else ran hands nothing on, and none fills the caches of other registries than its own. A
cache is a help: what goes wrong with it is logged.
"""

import logging
from collections.abc import Container
from contextlib import ExitStack
from typing import Final

import msgspec
import trio

from supervisor.categories.registries import PRESETS
from supervisor.config.profiles import Profile
from supervisor.errors import WorkerError
from supervisor.journal.facts import CallEnded
from supervisor.pool.pending_proposal import PendingProposal
from supervisor.pool.pools import Pools
from supervisor.system.package_caches import CacheStage, PackageCaches
from supervisor.tools import outcomes
from supervisor.tools.change_attempt import ChangeAttempt
from supervisor.tools.own_words import own_words
from supervisor.tools.session_rules import SessionRules
from workers.shell.cache_table import CACHES

_LEFT_OUT: Final = "it was installed; {} lines that packages may have worded are left out; the person was shown them"
_log: Final = logging.getLogger("strongroom.installs")


def cache_places(
    caches: PackageCaches, profile: Profile, registries: Container[str] = PRESETS
) -> tuple[tuple[str, str], ...]:
    """Return the caches of some registries that the commands of a profile are shown."""
    return caches.places((each.name, each.url) for each in profile.registries if each.name in registries)


async def commit(
    attempt: ChangeAttempt, proposal: PendingProposal, pools: Pools, rules: SessionRules
) -> ChangeAttempt | CallEnded:
    """Commit a change; of an install that has used the network, also what it leaves for others.

    Return the call's end, or the next attempt where the rehearsal was lost and nothing has changed.
    """
    ended = await _commit(attempt, proposal, pools, rules)
    if isinstance(ended, ChangeAttempt) or not (attempt.own_words and ended.ok and ended.form == "json"):
        return ended
    content, left_out = own_words(ended.content)
    ended = msgspec.structs.replace(ended, content=content)
    return outcomes.with_notes(ended, _LEFT_OUT.format(left_out)) if left_out else ended


async def _commit(
    attempt: ChangeAttempt, proposal: PendingProposal, pools: Pools, rules: SessionRules
) -> ChangeAttempt | CallEnded:
    caches = rules.services.caches
    if caches is None or not caches.limit or not attempt.places or attempt.wanted is None:
        return await attempt.commit(proposal, pools, rules)
    installs = attempt.wanted.install
    with ExitStack() as held:
        stage: CacheStage | None = None
        try:
            if installs.alone or installs.started:
                places = cache_places(caches, rules.profile, installs.registries)
                kept = [each for each in places if installs.alone or CACHES[each[0]].checked]
                stage = held.enter_context(caches.begin(kept))
                await proposal.keep(0, caches.limit, stage.take, caches=True)
        except WorkerError:
            return attempt.again(lost=True)
        except (OSError, ValueError) as error:
            _log.warning("an install hands nothing on: %s", error)
            stage = None
        ended = await attempt.commit(proposal, pools, rules)
        if isinstance(ended, CallEnded) and ended.ok:
            try:
                if stage is not None:
                    await trio.to_thread.run_sync(stage.move_in)
                await rules.remember(attempt.wanted)
            except (OSError, ValueError) as error:
                _log.warning("an install hands not all on: %s", error)
        return ended
