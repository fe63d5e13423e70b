"""THE TABLE: one row a category of tools.

Rule: what exists stands here and nowhere else; the supervisor offers it, the worker serves it, and neither
believes the other about it. A new category is one folder and one row.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from workers import wire
from workers.confine.order import STEPS, Prepared
from workers.confine.policy import FILES, Confinement
from workers.files import TOOLS as FILES_TOOLS
from workers.tool import Tool


class Category(msgspec.Struct, frozen=True):
    """A kind of worker: its tools, and what the kernel lets it touch."""

    name: str
    tools: tuple[Tool, ...]
    confinement: Confinement
    brokered: bool = False
    """Whether it asks the supervisor for connections."""
    prepare: Callable[[wire.Start], Prepared] = lambda _start: Prepared()
    """Runs in the worker before it is locked in: imports the category's library, reads what cannot be read later.

    Raises OSError or ValueError where the category cannot work here; the worker then refuses to serve.
    """


def table(*categories: Category) -> Mapping[str, Category]:
    """Index rows by name.

    Raises:
        ValueError: two categories or two tools share a name.
    """
    names = [category.name for category in categories]
    tools = [tool.name for category in categories for tool in category.tools]
    for name in names + tools:
        if (names + tools).count(name) > 1:
            raise ValueError(f"the catalog names {name!r} twice")
    return MappingProxyType({category.name: category for category in categories})


CATEGORIES: Final = table(Category("files", FILES_TOOLS, FILES))

PROTECTIONS: Final = tuple(feature for feature, _ in STEPS)
"""Every protection of a worker by name, in the order in which it is put on; `allow_degraded` may name one."""
