"""A text in the person's own editor.

Rule: the file is the person's alone and is gone afterwards. What the editor leaves counts only if it has ended well.
"""

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

_USUAL: Final = ("editor", "nano", "vi")
"""What is looked for where the environment names no editor."""


def editor_of(settings: Settings) -> list[str]:
    """Return the command that edits a file whose name follows it.

    Raises:
        ConfigError: there is none.
    """
    named = settings.variable("VISUAL") or settings.variable("EDITOR") or ""
    try:
        command = shlex.split(named) or [next(name for name in _USUAL if shutil.which(name))]
    except ValueError as error:
        raise ConfigError(f"The editor {named!r} is no command: {error}.") from error
    except StopIteration as error:
        raise ConfigError("There is no editor: set EDITOR to the one that you use.") from error
    return command


def edited(text: str, editor: list[str]) -> str:
    """Let the person edit a text, on the terminal; return it without the line end that editors add.

    Raises:
        ConfigError: the editor cannot be run, or has failed.
    """
    with tempfile.TemporaryDirectory(prefix="strongroom-") as folder:
        file = Path(folder, "line.md")
        file.write_text(text, "utf-8", "replace")
        if code := opened(file, editor):
            raise ConfigError(f"The editor {shlex.join(editor)} has failed ({code}); the line stays as it was.")
        try:
            return file.read_text("utf-8", "replace").removesuffix("\n")
        except OSError as error:
            raise ConfigError(f"The editor {shlex.join(editor)} has left no file: {error.strerror}.") from error


def opened(file: Path, editor: list[str]) -> int:
    """Let the person edit a file, on the terminal; return the editor's exit code.

    Raises:
        ConfigError: the editor cannot be run.
    """
    try:
        return subprocess.call([*editor, str(file)])  # noqa: S603 - the person's own
    except OSError as error:
        raise ConfigError(f"The editor {shlex.join(editor)} cannot be run: {error.strerror}.") from error
