"""Settings: the configuration, the environment, and the places where things are kept.

Rule: this is the only reader of os.environ. Everything here lies outside every root that a worker can write.
The keys of the configuration and their defaults stand in `config_keys`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from supervisor.categories.row import CategoryLimits, Locations, ProfileTraits
from supervisor.config.base_directories import places
from supervisor.config.config_keys import Config
from supervisor.system import safe_files
from workers.wire.messages import Inputs

_NOTHING: Final = rb"(?:[ \t]*(?:#[\t -~]*)?(?:\r?\n|\Z))*"
"""A text without a key, for which nothing needs to be imported that knows the keys."""
_NO_TRAITS: Final = ProfileTraits()
FileStamp = tuple[int, ...]
"""What tells one content of a file from the next: its identity, size and times; empty where there is no file."""
ProviderIdentity = tuple[str, str]
"""What tells a provider from others of its name: its label and the address that is its own."""
LOGIN: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""What of the person's environment a command that runs unconfined may be given."""
_PERSON: Final = (
    r"PATH|LANG|LC_ALL|LC_CTYPE|TZ|XDG_CONFIG_HOME|\w+_(CERT(_FILE)?|CA(_BUNDLE|_CERTS|INFO)|cafile)"
    r"|(JAVA|CARGO|RUSTUP|VOLTA|PNPM)_HOME|(GO|DOTNET|PYENV|RBENV|NODENV|GOENV|JENV)_?ROOT|GOPATH|CONDA_PREFIX"
    r"|VIRTUAL_ENV|(ASDF|MISE)_DATA_DIR|(NVM|FNM|SDKMAN)_DIR|(BUN|DENO)_INSTALL|UV_PYTHON_INSTALL_DIR"
    r"|(PYENV|RBENV|NODENV|GOENV|JENV|(ASDF|MISE)_[A-Z0-9_]+)_VERSION|RUSTUP_TOOLCHAIN"
)
"""What commands may have of the person, and by what they say where programs and files of certificates are."""


@dataclass(frozen=True)
class Settings:
    """The configuration, where it came from, and what the environment adds."""

    config: Config
    config_file: Path
    home: Path
    """Holds the journal; mode 0700."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The environment it was loaded from: model providers find their keys there."""
    socket: Path = Path()
    """Where the daemon listens; by default in the home directory."""
    logs: Path = Path()
    """The directory of the daemon's log; by default in the home directory."""
    notify_socket: str | None = None
    """Where systemd wants to hear of the daemon, sd_notify(3)."""
    watchdog_s: float | None = None
    """Seconds after which systemd takes a silent daemon for dead, sd_watchdog_enabled(3)."""
    no_color: bool = False
    """NO_COLOR is set (https://no-color.org)."""
    home_variables: tuple[tuple[str, str], ...] = ()
    """The variables that said where things are kept: with the same ones, another process finds the same home."""
    login: tuple[tuple[str, str], ...] = ()
    """What of the person's environment a command that runs unconfined is given."""
    config_stamp: FileStamp = field(default=(), compare=False)
    """Of the configuration's file, before it was read."""
    keys: Mapping[ProviderIdentity, str] = field(default_factory=dict, repr=False, compare=False)
    """The keys that count in place of those of the environment; "" is none (`supervisor.agent.models.key_choice`)."""

    def __post_init__(self) -> None:
        for name, default in (("socket", "daemon.sock"), ("logs", "logs")):
            if getattr(self, name) == Path():
                object.__setattr__(self, name, self.home / default)

    def variable(self, name: str) -> str:
        """Return an environment variable; empty where it is not set."""
        return self.environment.get(name, "")

    @property
    def person(self) -> dict[str, str]:
        """What a client tells of the environment of who opens a session: where programs are, and their language."""
        found = ((name, value) for name, value in self.environment.items() if value and re.fullmatch(_PERSON, name))
        return {name: value.encode("utf-8", "replace").decode() for name, value in found}  # as JSON can have it

    @property
    def journal(self) -> Path:
        return self.home / "journal.db"

    @property
    def packs(self) -> Path:
        return self.home / "kept"

    @property
    def contents(self) -> Path:
        """The directory of images and documents that models were shown."""
        return self.home / "content"

    @property
    def rules_file(self) -> Path:
        """The file of the rules that people made with approvals."""
        return self.home / "rules.json"

    @property
    def narrowings_file(self) -> Path:
        """The file of what people said of the files in roots that narrow sessions."""
        return self.home / "narrowings.json"

    @property
    def keys_file(self) -> Path:
        """The file of the keys that `strongroom login` keeps."""
        return self.home / "keys.json"

    @property
    def proof_key(self) -> Path:
        """The file of the key that proofs are signed with."""
        return self.home / "proof_key.pem"

    @property
    def traces_file(self) -> Path:
        """The file that says how far servers have taken the journal's spans."""
        return self.home / "traces.json"

    @property
    def lock(self) -> Path:
        """The file whose lock the running daemon holds."""
        return self.home / "daemon.lock"

    @property
    def locations(self) -> Locations:
        """The paths that categories' inputs are made from."""
        return Locations(self.config_file, self.home, self.packs)

    def limits(self, category: str) -> CategoryLimits:
        """Return the limits of a category, configured or default."""
        from supervisor.categories.rows import ROWS

        row = ROWS[category]
        limits = row.fit_limits(self.config.limits.get(category, row.limits), self.config)
        return msgspec.structs.replace(limits, soft_memory_mb=min(limits.soft_memory_mb, limits.memory_mb * 3 // 4))

    def inputs(self, category: str, traits: ProfileTraits = _NO_TRAITS) -> Inputs:
        """Return what the workers of a category are given for a profile."""
        from supervisor.categories.rows import ROWS

        return ROWS[category].inputs(self.config, self.locations, traits)


def load(environ: Mapping[str, str] = os.environ, *, read: bool = True) -> Settings:
    """Find where things are kept, and read the configuration unless it is not to be `read`.

    Raises:
        ConfigError: the configuration is unreadable, not TOML, or has an unknown key or a wrong value.
    """
    kept = places(environ)
    home = Path(kept.home).absolute()
    settings = Settings(
        Config(),
        file := Path(kept.config_file).absolute(),
        home,
        dict(environ),
        Path(kept.socket).absolute(),
        Path(kept.logs).absolute(),
        environ.get("NOTIFY_SOCKET") or None,
        _watchdog_s(environ),
        bool(environ.get("NO_COLOR")),
        tuple((name, str(home) if name == "STRONGROOM_HOME" else environ[name]) for name in kept.variables),
        tuple((name, environ[name]) for name in LOGIN if environ.get(name)),
        stamp_of(file),
    )
    if not read or _says_nothing(file):
        return settings
    from supervisor.config.config_reader import read_config

    return replace(settings, config=read_config(settings.locations))


def stamp_of(file: Path) -> FileStamp:
    """Return what tells a file's content from what it was, or will be."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def load_home(home: str | None) -> Settings:
    """Do as `load` does, of this home, whatever the environment says; None leaves it to the environment.

    Raises:
        ConfigError: as `load`.
    """
    return load() if home is None else load({**os.environ, "STRONGROOM_HOME": os.path.expanduser(home)})


def _says_nothing(file: Path) -> bool:
    """Say whether there is no configuration, or none but comments, as `strongroom init` writes it."""
    try:
        return re.fullmatch(_NOTHING, safe_files.read_bytes(file)) is not None
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False  # `read_config` tells why


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    """Return what systemd asks of this process; the variables may have been meant for another one."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    ours = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
    number = int(microseconds) if re.fullmatch("[0-9]{1,19}", microseconds) else 0
    return number / 1e6 if ours and number else None
