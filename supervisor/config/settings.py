"""What the operator decides: `config.toml`, the environment, and where things are kept.

Rule: this is the only reader of os.environ. Every key is optional, an unknown key is an error that names the
nearest known one, and everything here lies outside every root that a worker can write.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeVar

import msgspec

from supervisor.categories.shell import ShellConfig
from supervisor.categories.shell import check as check_toolchains
from supervisor.categories.web import WebConfig, check_ca_file
from supervisor.config.config_errors import complaint, unreadable
from supervisor.errors import ConfigError
from supervisor.rules.rule import Rule, problem_of
from supervisor.system import plain_file
from workers.catalog import CATEGORIES, PROTECTIONS
from workers.wire.messages import Limits

_T = TypeVar("_T")

DEFAULT_MODEL: Final = "claude-haiku-5-5"
_XDG_PLACES: Final = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_LOGIN: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")


class CategoryLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """`[limits.CATEGORY]`: what one worker may use, and how the pool treats the category."""

    call_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    soft_memory_mb: Annotated[int, msgspec.Meta(ge=32, le=2**20)] = 256
    """A worker that holds more between two calls is replaced in peace; three quarters of `memory_mb` at most."""


_USUAL: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "search": {"processes": 64},
        "shell": {"memory_mb": 2048, "processes": 384, "open_files": 1024, "file_mb": 1024},
        "restore": {"memory_mb": 1024, "file_mb": 1024, "call_s": 180.0},
    }
)
"""Limits by default, where a category's differ from the others'. Of a command, memory and processes (threads count as
such) are those of all that it starts together."""

_COMMAND_ENDS_S: Final = 5.0
"""Seconds that a shell worker has, after a command's time is up, to end it and to answer."""


class ProfileConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[profiles.NAME]`: adds a profile, or overrides a built-in one key by key."""

    root: str | None = None
    tools: tuple[str, ...] | None = None
    ask: tuple[str, ...] | None = None
    writable: bool | None = None
    network: tuple[str, ...] | None = None
    """Hosts with their ports ("host:port"), those and no others, that a person may let a command reach."""


class LibrarianConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[librarian]`: where the repositories of the profile `librarian` are, as repos_path/GROUP/TECHNOLOGY."""

    repos_path: str = "~/repos"
    environment: str | None = None


class DaemonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[daemon]`: how long it lives, and how much it logs."""

    drain_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 10.0
    """Seconds that running turns have to end when the daemon is told to stop."""
    idle_exit_s: Annotated[float, msgspec.Meta(gt=0)] = 900.0
    """Seconds without a client or a turn after which it ends; `inf` is never."""
    resume_within_h: Annotated[float, msgspec.Meta(ge=0)] = 24.0
    """Hours after which a turn that was cut off is no longer gone on with."""
    log_mb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 5
    log_files: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5
    """Full log files that are kept beside the current one."""


class UndoConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[undo]`: how much of what calls replace is kept, so that it can be restored. A megabyte is 2**20 bytes."""

    each_mb: Annotated[int, msgspec.Meta(ge=0, le=2**20)] = 64
    """Of one file; a larger one's content is not kept, and an undo says so."""
    call_mb: Annotated[int, msgspec.Meta(ge=0, le=2**20)] = 512
    """Of one call."""
    total_mb: Annotated[int, msgspec.Meta(ge=0, le=2**30)] = 2048
    """Of all together, on the disk: the oldest goes first. With 0 nothing is kept, and nothing can be undone."""
    days: Annotated[float, msgspec.Meta(gt=0, le=36500)] = 30
    """After which it goes in any case."""


_PerMillion = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[prices.MODEL]`: what a million tokens of each kind cost."""

    input: _PerMillion
    output: _PerMillion
    cache_read: _PerMillion = 0.0
    cache_write: _PerMillion = 0.0
    currency: Annotated[str, msgspec.Meta(min_length=1, max_length=8)] = "USD"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of `config.toml`."""

    model: str | None = None
    profile: str = "vault"
    max_steps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50
    allow_degraded: tuple[str, ...] = ()
    limits: dict[str, CategoryLimits] = {}
    profiles: dict[str, ProfileConfig] = {}
    daemon: DaemonConfig = DaemonConfig()
    prices: dict[str, Price] = {}
    web: WebConfig = WebConfig()
    librarian: LibrarianConfig = LibrarianConfig()
    shell: ShellConfig = ShellConfig()
    rules: tuple[Rule, ...] = ()
    undo: UndoConfig = UndoConfig()


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
    places: tuple[tuple[str, str], ...] = ()
    """The variables that said where things are kept: with the same ones, another process finds the same home."""
    login: tuple[tuple[str, str], ...] = ()
    """What of the person's environment a command that runs unconfined is given."""

    def __post_init__(self) -> None:
        for name, default in (("socket", "daemon.sock"), ("logs", "logs")):
            if getattr(self, name) == Path():
                object.__setattr__(self, name, self.home / default)

    def variable(self, name: str) -> str:
        """Return an environment variable; empty where it is not set."""
        return self.environment.get(name, "")

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self.home / "journal.db"

    @property
    def kept(self) -> Path:
        """The directory of what calls replaced, for undo."""
        return self.home / "kept"

    @property
    def standing(self) -> Path:
        """The file of the rules that people made in reviews."""
        return self.home / "rules.json"

    @property
    def lock(self) -> Path:
        """The file whose lock the running daemon holds."""
        return self.home / "daemon.lock"

    def limits(self, category: str) -> CategoryLimits:
        """Return the limits of a category, configured or default; a call always has the time that a command has."""
        limits = self.config.limits.get(category) or msgspec.convert(_USUAL.get(category, {}), CategoryLimits)
        if category == "shell":
            call_s = max(limits.call_s, self.config.shell.timeout_s + _COMMAND_ENDS_S)
            limits = msgspec.structs.replace(limits, call_s=call_s)
        if category == "restore":
            limits = msgspec.structs.replace(limits, file_mb=max(limits.file_mb, self.config.undo.each_mb))
        return msgspec.structs.replace(limits, soft_memory_mb=min(limits.soft_memory_mb, limits.memory_mb * 3 // 4))


def load(environ: Mapping[str, str] = os.environ, *, read: bool = True) -> Settings:
    """Read the configuration; where it is not to be `read`, return what holds without one.

    Raises:
        ConfigError: unreadable, not TOML, an unknown key or a wrong value.
    """
    places: tuple[tuple[str, str], ...]
    if environ.get("STRONGROOM_HOME"):
        home = Path(environ["STRONGROOM_HOME"]).absolute()
        file, logs, socket = home / "config.toml", home / "logs", home / "daemon.sock"
        places = (("STRONGROOM_HOME", str(home)),)
    else:
        user = Path(environ.get("HOME") or os.path.expanduser("~"))
        home = _xdg(environ, "XDG_DATA_HOME", user / ".local/share") / "strongroom"
        file = _xdg(environ, "XDG_CONFIG_HOME", user / ".config") / "strongroom" / "config.toml"
        logs = _xdg(environ, "XDG_STATE_HOME", user / ".local/state") / "strongroom" / "logs"
        runtime = environ.get("XDG_RUNTIME_DIR", "")
        socket = Path(runtime, "strongroom") / "daemon.sock" if runtime.startswith("/") else home / "daemon.sock"
        places = tuple((name, environ[name]) for name in _XDG_PLACES if environ.get(name, "").startswith("/"))
    return Settings(
        _read(file, home) if read else Config(),
        file,
        home,
        dict(environ),
        socket,
        logs,
        environ.get("NOTIFY_SOCKET") or None,
        _watchdog_s(environ),
        bool(environ.get("NO_COLOR")),
        places,
        tuple((name, environ[name]) for name in _LOGIN if environ.get(name)),
    )


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    """Return what systemd asks of this process; the variables may have been meant for another one."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    ours = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
    number = int(microseconds) if re.fullmatch("[0-9]{1,19}", microseconds) else 0
    return number / 1e6 if ours and number else None


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    value = environ.get(name, "")
    return Path(value) if value.startswith("/") else default


def rules_of(file: Path) -> tuple[Rule, ...]:
    """Read a file, or a pipe, that holds `[[rules]]` and nothing else.

    Raises:
        ConfigError: there is none, unreadable, not TOML, an unknown key or a wrong value.
    """
    table = _table(file.read_bytes, file)
    if table is None:
        raise ConfigError(f"{file} does not exist. Name a TOML file with [[rules]].")
    for key in table:
        _known(file, "", key, ("rules",))
    return _rules(file, table.get("rules"))


def _read(file: Path, home: Path) -> Config:
    table = _table(lambda: plain_file.read_bytes(file), file)
    if table is None:
        return Config()
    _check_keys(file, table)
    _fill_in(table)
    rules = _rules(file, table.pop("rules", []))
    config = _converted(f"{file}: ", table, Config)
    config = msgspec.structs.replace(config, rules=rules)
    for name in config.allow_degraded:
        _known(file, "allow_degraded", name, PROTECTIONS)
    check_ca_file(file, config.web)
    check_toolchains(config.shell.toolchains, file, home)
    return config


def _table(read: Callable[[], bytes], file: Path) -> dict[str, Any] | None:
    """Return what is in a TOML file, which `read` reads; None where there is none.

    Raises:
        ConfigError: it cannot be read, or is not TOML.
    """
    text = ""
    try:
        text = read().decode("utf-8")
        return tomllib.loads(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {unreadable(error, text)}.") from error


def _rules(file: Path, given: Any) -> tuple[Rule, ...]:
    """Check rules one by one: a mistake names its number."""
    if not isinstance(given, list):
        raise ConfigError(f"{file}: `rules` is no list: begin each rule with a line [[rules]].")
    found = []
    for number, inner in enumerate(given, 1):
        where = f"{file}: number {number} of [[rules]]"
        for key in inner if isinstance(inner, dict) else ():
            _known(where, "", key, Rule.__struct_fields__)
        rule = _converted(f"{where}: ", inner, Rule)
        if problem := problem_of(rule):
            raise ConfigError(f"{where}: {problem}")
        found.append(rule)
    return tuple(found)


_SECTIONS: Final = (
    ("daemon", DaemonConfig),
    ("web", WebConfig),
    ("librarian", LibrarianConfig),
    ("shell", ShellConfig),
    ("undo", UndoConfig),
)


def _check_keys(file: Path, table: dict[str, Any]) -> None:
    for key in table:
        _known(file, "", key, Config.__struct_fields__)
    for section, only in _SECTIONS:
        inner = table.get(section)
        for key in inner if isinstance(inner, dict) else ():
            _known(file, section, key, only.__struct_fields__)
    for section, known in (("limits", CategoryLimits), ("profiles", ProfileConfig), ("prices", Price)):
        inner = table.get(section)
        for name, keys in (inner if isinstance(inner, dict) else {}).items():
            if section == "limits":
                _known(file, section, name, CATEGORIES)
            for key in keys if isinstance(keys, dict) else ():
                _known(file, f"{section}.{name}", key, known.__struct_fields__)


def _converted(where: str, given: Any, wanted: type[_T]) -> _T:
    try:
        return msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        said = complaint(given, wanted) or str(error)
        raise ConfigError(f"{where}{said}{'' if said.endswith('?') else '.'}") from error


def _fill_in(table: dict[str, Any]) -> None:
    """Let each configured category keep its own usual limits where the operator names none."""
    limits = table.get("limits")
    for category, inner in limits.items() if isinstance(limits, dict) else ():
        if isinstance(inner, dict):
            inner.update({**_USUAL.get(category, {}), **inner})


def _known(file: Path | str, where: str, key: str, known: Any) -> None:
    if key in known:
        return
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(known))}"
    raise ConfigError(f"{file}: unknown name {key!r}{f' in [{where}]' if where else ''}; {hint}")
