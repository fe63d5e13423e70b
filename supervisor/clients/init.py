"""`strongroom init`: a vault to begin with, and a commented configuration that names it.

Rule: nothing that exists is changed or added to; what is made is whole, or not there.
"""

import json
import os
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.config.config_keys import VAULT
from supervisor.config.reference import as_toml
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, reason
from supervisor.system.safe_files import own_directory, secure_home, write_new

_NOTE: Final = "welcome.md"
_NOTE_TEXT: Final = """\
# Welcome

This directory is your vault: the agent of the profile `vault` can read and write here, and nowhere else. It has no
shell, and reads pages of a few sites only ([web] allow in the configuration).

Put notes here, or point Strongroom at notes that you have: `strongroom console --root DIR`.

Things to ask for:

- What notes are there?
- Read welcome.md and tell me what I can do here.
- Write a list of three garden jobs for April into garden/april.md.
- Which notes mention tomatoes?

Without a key for a language model the offline model answers. It understands plain commands only, such as
`list **/*.md`, `search tomatoes`, `read welcome.md`, `write ideas/first.md: text` and `digest **/*.md into summary.md`.
"""


class Made(NamedTuple):
    """One thing that `init` is about, and whether it was made just now."""

    path: Path
    what: str
    new: bool


def set_up(settings: Settings, directory: str) -> list[Made]:
    """Make a vault in `directory` and the configuration, where they are not there yet; return what there is now.

    Raises:
        ConfigError: something cannot be made.
    """
    try:
        vault = Path(directory).expanduser().absolute() / VAULT
        made = _vault(vault)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"The vault in {directory!r} cannot be made: {reason(error)}.") from error
    return [*made, _configuration(settings, vault)]


def _vault(vault: Path) -> list[Made]:
    if os.path.lexists(vault):
        if not vault.is_dir():
            raise ConfigError(f"{vault} exists and is not a directory. Move it away, or choose another place.")
        return [Made(vault, "the vault", False)]
    vault.mkdir(parents=True)
    write_new(vault / _NOTE, [_NOTE_TEXT.encode()], 0o666)
    return [Made(vault, "the vault", True), Made(vault / _NOTE, "a welcome note", True)]


def _configuration(settings: Settings, vault: Path) -> Made:
    file = settings.config_file
    secure_home(settings.home)
    try:
        if file.parent != settings.home:
            own_directory(file.parent, "Set XDG_CONFIG_HOME to a directory of your own.")
        write_new(file, [(as_toml() + _chosen(vault)).encode()], 0o600)
    except FileExistsError:
        return Made(file, "the configuration", False)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {reason(error)}.") from error
    return Made(file, "the configuration", True)


def _chosen(vault: Path) -> str:
    """Return what makes a vault the one of its profile, wherever a person is; "" where TOML cannot name it."""
    name = json.dumps(str(vault), ensure_ascii=False).replace("\x7f", "\\u007f")
    try:
        name.encode()
    except UnicodeEncodeError:
        return ""
    return f"\n# Where you are in no directory with a `{VAULT}` of its own.\n[profiles.{VAULT}]\nroot = {name}\n"
