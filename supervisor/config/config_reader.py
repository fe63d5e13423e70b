"""Reading `config.toml`: from its text to a `Config`, every value checked.

Rule: a mistake is a sentence that names the file, the line, the key and what it must be. Who has no such file does not
import this: it imports every category for its section.
"""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from supervisor.categories.row import CategoryLimits, Locations
from supervisor.categories.rows import ROWS
from supervisor.categories.web import check_certificates
from supervisor.config.config_errors import problem_in, unknown, unreadable
from supervisor.config.config_keys import Config
from supervisor.config.key_lines import KeyPath, key_lines, line_of
from supervisor.errors import ConfigError, reason
from supervisor.rules.rule import Rule, problem_of
from supervisor.system import safe_files
from workers.catalog import protections

_T = TypeVar("_T")

SECTIONS: Final = [(row.section, row.config) for row in ROWS.values() if row.config is not None]
_LIMITS: Final = msgspec.defstruct(
    "Limits",
    [(name, CategoryLimits, row.limits) for name, row in ROWS.items()],
    frozen=True,
    forbid_unknown_fields=True,
)


def _file_fields() -> Iterator[tuple[str, Any, Any]]:
    for each in msgspec.structs.fields(Config):
        if each.name == "limits":
            yield each.name, _LIMITS, _LIMITS()
        elif each.name == "sections":
            yield from ((name, kind, kind()) for name, kind in SECTIONS)
        else:
            default = each.default_factory() if each.default is msgspec.NODEFAULT else each.default
            yield each.name, each.type, default


CONFIG_FILE: Final = msgspec.defstruct("ConfigFile", _file_fields(), frozen=True, forbid_unknown_fields=True)
"""The keys of `config.toml`: those of `Config`, and one for each section of a category."""


class _RulesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: tuple[Rule, ...] = ()


class _TomlText(NamedTuple):
    """A TOML file that was read."""

    file: Path
    text: str
    table: dict[str, Any]

    def wrong(self, path: KeyPath, problem: str) -> ConfigError:
        """Return the error for what is wrong at a path: it names the file, and the line where there is one."""
        line = line_of(key_lines(self.text), path)
        return ConfigError(f"{self.file}{'' if line is None else f':{line}'}: {problem}")


class ConfigValue(NamedTuple):
    """One key of the configuration, and where it stands."""

    path: tuple[str, ...]
    value: Any
    """As JSON has it; None where there is none."""
    line: int
    """Of the file; 0 where the default holds."""


def config_values(locations: Locations) -> list[ConfigValue]:
    """Return each key that there is, with what holds.

    Raises:
        ConfigError: as `read_config`.
    """
    file = locations.config_file
    source = _read_toml(lambda: safe_files.read_bytes(file), file) or _TomlText(file, "", {})
    _fill_in(source.table)
    lines = key_lines(source.text)
    whole = msgspec.to_builtins(_converted(source, CONFIG_FILE))
    return [
        ConfigValue(
            path, value, lines.get(path) or (path == ("fallbacks",) and bool(value) and lines.get(("model",))) or 0
        )
        for path, value in _leaves(whole)
    ]


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and (value or not path):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path, value


def toml_as(data: bytes, file: Path, wanted: type[_T]) -> _T:
    """Return what a TOML file holds.

    Raises:
        ConfigError: not TOML, an unknown key or a wrong value.
    """
    source = _read_toml(lambda: data, file)
    assert source is not None
    return _converted(source, wanted)


def rules_of(file: Path) -> tuple[Rule, ...]:
    """Read a file, or a pipe, that holds `[[rules]]` and nothing else.

    Raises:
        ConfigError: there is none, unreadable, not TOML, an unknown key or a wrong value.
    """
    source = _read_toml(file.read_bytes, file)
    if source is None:
        raise ConfigError(f"{file} does not exist. Name a TOML file with [[rules]].")
    return _checked(source, _converted(source, _RulesFile).rules)


def read_config(locations: Locations, text: str | None = None) -> Config:
    """Read the configuration; where there is no file, all is default.

    Args:
        locations: where it is.
        text: in place of what is in the file.

    Raises:
        ConfigError: unreadable, not TOML, an unknown key or a wrong value.
    """
    file = locations.config_file
    source = _read_toml(lambda: safe_files.read_bytes(file) if text is None else text.encode(), file)
    if source is None:
        return Config()
    table = source.table
    _fill_in(table)
    whole: Any = _converted(source, CONFIG_FILE)
    given = {name: getattr(whole, name) for name in Config.__struct_fields__ if name in table}
    given["limits"] = {name: getattr(whole.limits, name) for name in table.get("limits", ())}
    config = Config(**given, sections=tuple(getattr(whole, name) for name, _ in SECTIONS if name in table))
    _checked(source, config.rules)
    for name in config.allow_degraded:
        if name not in protections():
            problem = f"`allow_degraded`: {unknown('protection', name, protections())}"
            raise source.wrong(("allow_degraded",), problem)
    check_certificates(config.network.ca_file, "network", file)
    for name, provider in config.providers.items():
        check_certificates(provider.ca_file, f"providers.{name}", file)
    for row in ROWS.values():
        row.check(config, locations)
    return config


def _read_toml(read: Callable[[], bytes], file: Path) -> _TomlText | None:
    """Return a TOML file, which `read` reads; None where there is none.

    Raises:
        ConfigError: it cannot be read, or is not TOML.
    """
    text = ""
    try:
        text = read().decode("utf-8")
        return _TomlText(file, text, tomllib.loads(text))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {unreadable(error, text)}.") from error


def _fill_in(table: dict[str, Any]) -> None:
    """Take a list of models apart, and let each configured category keep its own default limits."""
    match table.get("model"):
        case [str(first), *others] if "fallbacks" not in table:
            table["model"], table["fallbacks"] = first, others
    limits = table.get("limits")
    for category, inner in limits.items() if isinstance(limits, dict) else ():
        if isinstance(inner, dict) and category in ROWS:
            inner.update(msgspec.structs.asdict(ROWS[category].limits) | inner)


def _converted(source: _TomlText, wanted: type[_T]) -> _T:
    problem = problem_in(source.table, wanted)
    if problem.text:
        raise source.wrong(problem.path, problem.text)
    return msgspec.convert(source.table, wanted)


def _checked(source: _TomlText, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    for number, rule in enumerate(rules, 1):
        if problem := problem_of(rule):
            raise source.wrong(("rules", number), f"number {number} of `rules`: {problem}")
    return rules
