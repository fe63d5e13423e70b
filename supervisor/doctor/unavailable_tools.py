"""Tools of a profile that cannot work here: what their sandbox needs is tried for real.

Rule: a worker is started and thrown away, on an empty directory; nothing is run in it, and nothing recorded.
"""

import os
import tempfile
from collections.abc import Sequence

import trio

from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.pool.pools import Pools
from supervisor.session.resources import child_spec
from supervisor.tools.catalog import SANDBOXED, offers


def unavailable_tools(settings: Settings, tools: Sequence[str]) -> dict[str, str]:
    """Return those of `tools` that a session would not be offered here, each with why its workers refuse."""
    categories = {name: offer.category for name, offer in offers(tools).items() if offer.category in SANDBOXED}
    refused = {category: trio.run(_refusal, settings, category) for category in dict.fromkeys(categories.values())}
    return {name: refused[category] for name, category in categories.items() if refused[category]}


async def _refusal(settings: Settings, category: str) -> str:
    with tempfile.TemporaryDirectory(prefix="strongroom-tools-") as root:
        spec = child_spec(settings, Profile("tools", os.path.realpath(root), ()), category)
        async with trio.open_nursery() as nursery:
            pools = Pools(root, lambda _category: spec, nursery)
            try:
                return await pools.refusal(category)
            finally:
                await pools.close()
                nursery.cancel_scope.cancel()
