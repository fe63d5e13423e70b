"""What the operator decides: `config.toml`, the environment, and where things are kept.

Rule: this is the only reader of os.environ. Every key is optional, an unknown key is an error that names the
nearest known one, and everything here lies outside every root that a worker can write.
"""

import difflib
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from supervisor.errors import ConfigError
from workers.catalog import CATEGORIES, PROTECTIONS
from workers.wire import Limits

DEFAULT_MODEL: Final = "claude-haiku-5-5"


class CategoryLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """`[limits.CATEGORY]`: what one worker may use, and how the pool treats the category."""

    call_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4


class ProfileConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[profiles.NAME]`: adds a profile, or overrides a built-in one key by key."""

    root: str | None = None
    tools: tuple[str, ...] | None = None
    ask: tuple[str, ...] | None = None
    writable: bool | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of `config.toml`."""

    model: str | None = None
    profile: str = "vault"
    max_steps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50
    allow_degraded: tuple[str, ...] = ()
    limits: dict[str, CategoryLimits] = {}
    profiles: dict[str, ProfileConfig] = {}


@dataclass(frozen=True)
class Settings:
    """The configuration, where it came from, and what the environment adds."""

    config: Config
    config_file: Path
    home: Path
    """Holds the journal; mode 0700."""
    api_key: str | None = None
    base_url: str | None = None

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self.home / "journal.db"

    def limits(self, category: str) -> CategoryLimits:
        """Return the limits of a category, configured or default."""
        return self.config.limits.get(category, CategoryLimits())


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the configuration.

    Raises:
        ConfigError: unreadable, not TOML, an unknown key or a wrong value.
    """
    if environ.get("STRONGROOM_HOME"):
        home = Path(environ["STRONGROOM_HOME"]).absolute()
        file = home / "config.toml"
    else:
        user = Path(environ.get("HOME") or os.path.expanduser("~"))
        home = _xdg(environ, "XDG_DATA_HOME", user / ".local/share") / "strongroom"
        file = _xdg(environ, "XDG_CONFIG_HOME", user / ".config") / "strongroom" / "config.toml"
    return Settings(
        _read(file),
        file,
        home,
        environ.get("ANTHROPIC_API_KEY") or None,
        environ.get("ANTHROPIC_BASE_URL") or None,
    )


def secure_home(home: Path) -> None:
    """Make the home directory if need be, for its owner alone.

    Raises:
        ConfigError: others may write there, it is not ours, or it cannot be made.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = home.stat()
    except OSError as error:
        raise ConfigError(f"The directory {home} cannot be used: {error.strerror}.") from error
    if status.st_uid != os.geteuid():
        raise ConfigError(f"{home} belongs to another user. Set STRONGROOM_HOME to a directory of your own.")
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise ConfigError(f"{home} can be written by others (insecure permissions): chmod 700 {home}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        home.chmod(0o700)


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    value = environ.get(name, "")
    return Path(value) if value.startswith("/") else default


def _read(file: Path) -> Config:
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    _check_keys(file, table)
    try:
        config = msgspec.convert(table, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}") from error
    for name in config.allow_degraded:
        _known(file, "allow_degraded", name, PROTECTIONS)
    return config


def _check_keys(file: Path, table: dict[str, Any]) -> None:
    for key in table:
        _known(file, "", key, Config.__struct_fields__)
    for section, known in (("limits", CategoryLimits), ("profiles", ProfileConfig)):
        inner = table.get(section)
        for name, keys in (inner if isinstance(inner, dict) else {}).items():
            if section == "limits":
                _known(file, section, name, CATEGORIES)
            for key in keys if isinstance(keys, dict) else ():
                _known(file, f"{section}.{name}", key, known.__struct_fields__)


def _known(file: Path, where: str, key: str, known: Any) -> None:
    if key in known:
        return
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(known))}"
    raise ConfigError(f"{file}: unknown name {key!r}{f' in [{where}]' if where else ''}; {hint}")
