"""THE TABLE: one row a category of tools.

Rule: what exists stands here and nowhere else; the supervisor offers it, the worker serves it, and neither
believes the other about it. A new category is one folder and one row.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from workers import wire
from workers.confine.commands import SHELL
from workers.confine.order import STEPS, Prepared
from workers.confine.policy import FILES, SEARCH, WEB, Confinement
from workers.files import TOOLS as FILES_TOOLS
from workers.search import TOOLS as SEARCH_TOOLS
from workers.search import prepare as prepare_search
from workers.shell import TOOLS as SHELL_TOOLS
from workers.shell import prepare as prepare_shell
from workers.tool import Tool
from workers.web import TOOLS as WEB_TOOLS
from workers.web.prepare import prepare as prepare_web


class Category(msgspec.Struct, frozen=True):
    """A kind of worker: its tools, and what the kernel lets it touch."""

    name: str
    tools: tuple[Tool, ...]
    confinement: Confinement
    brokered: bool = False
    """Whether it asks the supervisor for connections."""
    warm: bool = False
    """Whether a session starts a worker, and a spare, before there is a call for it: what nearly every one needs."""
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


CATEGORIES: Final = table(
    Category("files", FILES_TOOLS, FILES, warm=True),
    Category("search", SEARCH_TOOLS, SEARCH, prepare=prepare_search),
    Category("web", WEB_TOOLS, WEB, brokered=True, prepare=prepare_web),
    Category("shell", SHELL_TOOLS, SHELL, prepare=prepare_shell),
)

PROTECTIONS: Final = tuple(feature for feature, _ in STEPS)
"""Every protection of a worker by name, in the order in which it is put on; `allow_degraded` may name one."""
