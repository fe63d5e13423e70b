"""The schemas of a batch's items, checked before anything runs."""

from collections.abc import Sequence

import msgspec

from supervisor.clients.batch.items import Item
from supervisor.errors import ConfigError


def check_schemas(items: Sequence[Item]) -> None:
    """Make sure that answers can be held against the schemas; most items have the same.

    Raises:
        ConfigError: one cannot be used.
    """
    asked = {msgspec.json.encode(item.schema): item for item in reversed(items) if item.schema is not None}
    if not asked:
        return
    from supervisor.agent.answer_schema import problem_in_schema

    for item in reversed(asked.values()):
        if why := problem_in_schema(item.schema):
            raise ConfigError(f"The schema of item {item.id!r} cannot be used: {why}.")
