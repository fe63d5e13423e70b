"""`/theme`: the theme of the console, one of ours or a file of the person's, kept for the next start.

Rule: a theme cannot stop the console: where the one that was chosen cannot be used, one sentence says why, and the
usual one is taken. A file `themes/NAME.toml` beside config.toml is the theme NAME.
"""

import os
import re
from pathlib import Path
from typing import Final

from supervisor.clients.console.choice_list import Choice
from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import Document
from supervisor.config.config_errors import unreadable
from supervisor.config.settings import Settings
from supervisor.display.columns import cut
from supervisor.display.themes import DARK, THEMES, ThemeError, ToneTable, theme_of
from supervisor.errors import ConfigError, StrongroomError
from supervisor.system.safe_files import own_file, read_bytes

_ENDING: Final = ".toml"
_NAME: Final = re.compile(r"[\w-]{1,60}")
_CHOSEN: Final = "console-theme"
"""The file in the home that names what was chosen."""
_LARGEST: Final = 2**16


def chosen(settings: Settings) -> tuple[ToneTable, str]:
    """Return the theme to start with, and why it is not the one that was chosen; "" where it is."""
    try:
        name = read_bytes(settings.home / _CHOSEN, 1000).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return DARK, ""
    try:
        return loaded(settings, name), ""
    except ConfigError as error:
        return DARK, str(error)


def loaded(settings: Settings, name: str) -> ToneTable:
    """Return a theme by its name.

    Raises:
        ConfigError: there is none, or its file is wrong; the sentence names file, line and key.
    """
    if name in THEMES:
        return THEMES[name]
    file = _folder(settings) / f"{name}{_ENDING}"
    if _NAME.fullmatch(name) is None or not file.is_file():
        raise ConfigError(f"There is no theme {name[:60]!r}: /theme lists them; a file {file} would be one.")
    import tomllib  # which few need

    text = ""
    try:
        text = read_bytes(file, _LARGEST).decode()
        return theme_of(name, tomllib.loads(text))
    except OSError as error:
        raise ConfigError(f"The theme {file} cannot be read: {error.strerror or error}.") from error
    except ThemeError as error:
        where = f"line {_line_of(text, error.key)}, `{cut(error.key, 60)}`"
        raise ConfigError(f"The theme {file}, {where}: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The theme {file} cannot be read: {unreadable(error, text)}.") from error


async def change_theme(controller: SessionController, argument: str) -> None:
    """Take another theme, and keep that choice; without a name, list them.

    Raises:
        ConfigError: there is none of that name, or it cannot be used here.
    """
    names = [*THEMES, *_files(controller.settings)]
    if not argument and not controller.screen.picks:
        controller.screen.show(Document("\n".join(names)))
        return
    if not argument:
        choices = [Choice(name, name, "" if name in THEMES else "yours") for name in names]
        argument = await controller.screen.pick("theme", choices, controller.screen.theme_name) or ""
    if argument:
        controller.screen.take_theme(loaded(controller.settings, argument))
        _keep(controller.settings, argument)
        controller.say(f"The theme is {argument} now.")


def _keep(settings: Settings, name: str) -> None:
    try:
        with open(own_file(settings.home / _CHOSEN, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(f"{name}\n")
    except (OSError, StrongroomError) as error:
        raise ConfigError(f"The theme is {name} until the end of this console: {error}") from error


def _folder(settings: Settings) -> Path:
    return settings.config_file.parent / "themes"


def _files(settings: Settings) -> list[str]:
    """Return the names of the person's own themes."""
    try:
        found = sorted(each.name.removesuffix(_ENDING) for each in _folder(settings).glob(f"*{_ENDING}"))
    except OSError:
        return []
    return [name for name in found if _NAME.fullmatch(name) and name not in THEMES]


def _line_of(text: str, key: str) -> int:
    """Return the line at which a key stands."""
    written = rf"[ \t]*[\[\"']*{re.escape(key)}[\]\"' \t]*(?:[=.]|$)"
    return next((number for number, line in enumerate(text.split("\n"), 1) if re.match(written, line)), 1)
