"""The supervisor's half of the category `files`."""

from typing import Final

from supervisor.categories.row import CategoryRow

ROW: Final = CategoryRow("No file is read or written here.")
