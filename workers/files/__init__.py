"""The category `files`: one file for each tool."""

from typing import Final

from workers.files.changed_since import changed_since
from workers.files.edit_file import edit_file
from workers.files.list_directory import list_directory
from workers.files.list_files import list_files
from workers.files.plan import plan
from workers.files.read_file import read_file
from workers.files.write_file import write_file
from workers.tool import Tool

TOOLS: Final[tuple[Tool, ...]] = (read_file, write_file, edit_file, list_files, list_directory, plan, changed_since)
