"""THE TABLE: one row a category of tools.

Rule: what exists stands here and nowhere else; the supervisor offers it, the worker serves it, and neither
believes the other about it. A new category is one folder and one row.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from workers.confine.confinements import Confinement
from workers.confine.steps import STEPS, Prepared
from workers.tool import Tool
from workers.wire import messages


class Category(msgspec.Struct, frozen=True):
    """A kind of worker: its tools, and what the kernel lets it touch."""

    name: str
    tools: tuple[Tool, ...]
    confinement: Confinement
    brokered: bool = False
    """Whether it asks the supervisor for connections."""
    networked: bool = False
    """Whether it does so where the profile names a network."""
    warm: bool = False
    """Whether a session starts a worker, and a spare, before there is a call for it: what nearly every one needs."""
    offered: bool = True
    """Whether a profile may name its tools; those of the others are called where a person asks for what they do."""
    inputs: type[messages.Inputs] = messages.Inputs
    """What its workers are given besides the root."""
    prepare: Callable[[messages.Start, Any], Prepared] = lambda _start, _inputs: Prepared()
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


class Catalog(Mapping[str, Category]):
    """Rows by name, each made when it is first asked for: a worker imports its own category and no other.

    Args:
        rows: a category's name -> what imports and makes its row.
    """

    def __init__(self, rows: Mapping[str, Callable[[], Category]]) -> None:
        self._rows = rows
        self._made: dict[str, Category] = {}

    def __getitem__(self, name: str) -> Category:
        if name not in self._made:
            self._made[name] = self._rows[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _files() -> Category:
    from workers.confine.confinements import FILES
    from workers.files import TOOLS

    return Category("files", TOOLS, FILES, warm=True)


def _search() -> Category:
    from workers.confine.confinements import SEARCH
    from workers.search import TOOLS, prepare
    from workers.search.search_inputs import SearchInputs

    return Category("search", TOOLS, SEARCH, inputs=SearchInputs, prepare=prepare)


def _web() -> Category:
    from workers.confine.confinements import WEB
    from workers.web import TOOLS
    from workers.web.prepare import prepare
    from workers.web.web_inputs import WebInputs

    return Category("web", TOOLS, WEB, brokered=True, inputs=WebInputs, prepare=prepare)


def _shell() -> Category:
    from workers.confine.command_policy import SHELL
    from workers.shell import TOOLS, prepare
    from workers.shell.shell_inputs import ShellInputs

    return Category("shell", TOOLS, SHELL, networked=True, inputs=ShellInputs, prepare=prepare)


def _restore() -> Category:
    from workers.confine.confinements import RESTORE
    from workers.restore import TOOLS, prepare
    from workers.restore.restore_inputs import RestoreInputs

    return Category("restore", TOOLS, RESTORE, offered=False, inputs=RestoreInputs, prepare=prepare)


CATEGORIES: Final = Catalog(
    MappingProxyType({"files": _files, "search": _search, "web": _web, "shell": _shell, "restore": _restore})
)


def find_tool(name: str) -> Tool | None:
    """Return the tool of that name, whatever its category; None where there is none."""
    return next((tool for category in CATEGORIES.values() for tool in category.tools if tool.name == name), None)


PROTECTIONS: Final = tuple(feature for feature, _ in STEPS)
"""Every protection of a worker by name, in the order in which it is put on; `allow_degraded` may name one."""
