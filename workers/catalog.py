"""THE TABLE: one row a category of tools.

Rule: what exists stands here and nowhere else; the supervisor offers it, the worker serves it, and neither
believes the other about it. A new category is one folder and one row; a new tool is named in
`TOOLS` of its category's `__init__.py`. What locks a worker in is imported in it alone. The supervisor's
own tools have no category.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workers.tool import Tool
from workers.wire import messages

if TYPE_CHECKING:
    from workers.confine.confinements import Confinement
    from workers.confine.steps import Prepared


def _prepare_nothing(_start: messages.Start, _inputs: messages.Inputs) -> "Prepared":
    from workers.confine.steps import Prepared

    return Prepared()


class Category(msgspec.Struct, frozen=True):
    """A kind of worker: its tools, and what the kernel lets it touch."""

    name: str
    tools: tuple[Tool, ...]
    confinement: "Callable[[], Confinement]"
    brokered: bool = False
    """Whether it asks the supervisor for connections."""
    networked: bool = False
    """Whether it does so where the profile names a network."""
    warm: bool = False
    """Whether a session starts a worker, and a spare, before there is a call for it: what nearly every one needs."""
    inputs: type[messages.Inputs] = messages.Inputs
    """What its workers are given besides the root."""
    late: tuple[str, ...] = ()
    """The modules of ours that `prepare` and the tools import late; the template has them for all its workers."""
    prepare: "Callable[[messages.Start, Any], Prepared]" = _prepare_nothing
    """Runs in the worker before it is locked in: imports the category's library, reads what cannot be read later.

    Raises OSError or ValueError where the category cannot work here; the worker then refuses to serve.
    """


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
    from workers.files import TOOLS

    def confinement() -> "Confinement":
        from workers.confine.confinements import FILES

        return FILES

    return Category("files", TOOLS, confinement, warm=True)


def _search() -> Category:
    from workers.search import TOOLS
    from workers.search.search_inputs import SearchInputs

    def confinement() -> "Confinement":
        from workers.confine.confinements import SEARCH

        return SEARCH

    def prepare(start: messages.Start, inputs: SearchInputs) -> "Prepared":
        from workers.search.prepare import prepare

        return prepare(start, inputs)

    late = ("workers.search.prepare", "workers.search.file_listing", "workers.search.text_search")
    return Category("search", TOOLS, confinement, inputs=SearchInputs, late=late, prepare=prepare)


def _web() -> Category:
    from workers.web import TOOLS
    from workers.web.web_inputs import WebInputs

    def confinement() -> "Confinement":
        from workers.confine.confinements import WEB

        return WEB

    def prepare(start: messages.Start, inputs: WebInputs) -> "Prepared":
        from workers.web.prepare import prepare

        return prepare(start, inputs)

    return Category("web", TOOLS, confinement, brokered=True, inputs=WebInputs, prepare=prepare)


def _shell() -> Category:
    from workers.shell import TOOLS, prepare
    from workers.shell.shell_inputs import ShellInputs

    def confinement() -> "Confinement":
        from workers.confine.command_policy import SHELL

        return SHELL

    late = ("workers.shell.sandbox.setup",)
    return Category("shell", TOOLS, confinement, networked=True, inputs=ShellInputs, late=late, prepare=prepare)


def _restore() -> Category:
    from workers.restore import TOOLS, prepare
    from workers.restore.restore_inputs import RestoreInputs

    def confinement() -> "Confinement":
        from workers.confine.confinements import RESTORE

        return RESTORE

    late = ("workers.restore.private_tree",)
    return Category("restore", TOOLS, confinement, inputs=RestoreInputs, late=late, prepare=prepare)


def _media() -> Category:
    from workers.media import TOOLS, prepare

    def confinement() -> "Confinement":
        from workers.confine.confinements import MEDIA

        return MEDIA

    return Category("media", TOOLS, confinement, prepare=prepare)


CATEGORIES: Final = Catalog(
    MappingProxyType(
        {"files": _files, "search": _search, "web": _web, "shell": _shell, "restore": _restore, "media": _media}
    )
)


@cache
def supervised_tools() -> Mapping[str, Tool]:
    """Return the tools that the supervisor runs itself, by name: they read what it has, and touch nothing."""
    from workers.supervised.read_skill import read_skill
    from workers.supervised.recall import recall

    return MappingProxyType({each.name: each for each in (recall, read_skill)})


@cache
def offered_tools() -> Mapping[str, Tool]:
    """Return the tools that a profile may name, by name."""
    every = (tool for category in CATEGORIES.values() for tool in category.tools)
    return MappingProxyType({tool.name: tool for tool in every if tool.offered} | dict(supervised_tools()))


def find_tool(name: str) -> Tool | None:
    """Return the tool of that name, whatever its category; None where there is none."""
    found = (tool for category in CATEGORIES.values() for tool in category.tools if tool.name == name)
    return next(found, None) or supervised_tools().get(name)


def protections() -> tuple[str, ...]:
    """Return every protection of a worker by name, as it is put on; `allow_degraded` may name one."""
    from workers.confine.steps import STEPS

    return tuple(feature for feature, _ in STEPS)
