"""A call that cannot be rehearsed, run on the root itself: because a person, or a rule, said so."""

from supervisor.errors import WorkerError
from supervisor.journal.facts import CallEnded
from supervisor.pool.pools import Pools
from supervisor.tools.availability import no_answer
from supervisor.tools.change_attempt import ChangeAttempt, raw_arguments
from supervisor.tools.outcomes import worker_answered
from supervisor.tools.services import ChangeServices
from workers.wire import frames


async def run_on_root(attempt: ChangeAttempt, pools: Pools, services: ChangeServices, *, unlisted: bool) -> CallEnded:
    """Run a call whose commit was recorded; `unlisted` says whether a program that is not listed may start."""
    call, offer = attempt.call, attempt.offer
    arguments = raw_arguments(call)
    seconds = services.call_s(call.tool, arguments)
    try:
        answer = await pools.pool(offer.category).call(
            offer.name,
            arguments,
            effect=True,
            timeout=seconds,
            output=attempt.show,
            network=attempt.network,
            unlisted=unlisted,
        )
    except (WorkerError, frames.FrameTooLarge) as error:
        return no_answer(call, error, pools, offer.category, seconds=seconds, committing=True)
    return worker_answered(call, answer)
