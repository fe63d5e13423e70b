"""The category `files`: one file for each tool."""

from typing import Final

from workers.files.directory import list_directory
from workers.files.edit import edit_file
from workers.files.read import read_file
from workers.files.walk import list_files
from workers.files.write import write_file
from workers.tool import Tool

TOOLS: Final[tuple[Tool, ...]] = (read_file, write_file, edit_file, list_files, list_directory)
