"""The rows of all categories: `supervisor.categories.NAME.ROW` for each name in the workers' catalog."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from supervisor.categories.row import CategoryRow
from workers.catalog import CATEGORIES

ROWS: Final[Mapping[str, CategoryRow]] = MappingProxyType(
    {name: import_module(f"supervisor.categories.{name}").ROW for name in CATEGORIES}
)
