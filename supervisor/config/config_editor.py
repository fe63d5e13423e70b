"""Changes to `config.toml` that keep what a person wrote there: comments, order and form.

Rule: the file as it would be is read and checked like any other first; what is wrong with it is told, and nothing is
changed. It is replaced as a whole, under a lock. A link stays one: what it leads to is replaced.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from supervisor.config.config_reader import read_config
from supervisor.config.profiles import check_profiles
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError, reason
from supervisor.system.safe_files import locked_for_change, own_directory, read_bytes, replace_file, secure_home

_HEADER: Final = re.compile(r"#?\[")
_PLACE: Final = re.compile(r":[0-9]+: |: ")


def key_path(text: str) -> tuple[str, ...]:
    """Return the keys of a dotted key, as TOML has it.

    Raises:
        ConfigError: it is none.
    """
    path: list[str] = []
    try:
        value: Any = tomllib.loads(f"{text} = 0")
        while value != 0:
            ((name, value),) = value.items()
            path.append(name)
    except (ValueError, RecursionError):  # also where it holds a second key
        raise ConfigError(f'{text!r} is no key. Write one as web.allow, or models."claude-x".window.') from None
    return tuple(path)


def set_value(settings: Settings, key: str, given: str) -> Path:
    """Give a key a value, which is TOML or else a text; return the file.

    Raises:
        ConfigError: there is no such key, it cannot have that value, or the file cannot be written.
    """
    path = key_path(key)
    return _changed(settings, lambda text: (_with_value(text, path, value) for value in _values(given)))


def unset(settings: Settings, key: str) -> Path:
    """Take a key out, so that its default holds; return the file.

    Raises:
        ConfigError: it does not stand there, or the file cannot be written.
    """
    path = key_path(key)
    return _changed(settings, lambda text: iter([_without(text, path, key)]))


def _changed(settings: Settings, drafts: Callable[[str], Iterator[str]]) -> Path:
    file = Path(os.path.realpath(settings.config_file))
    secure_home(settings.home)
    with locked_for_change(settings.home / "config.toml"):
        try:
            if file.parent != settings.home:
                own_directory(file.parent, "Set XDG_CONFIG_HOME to a directory of your own.")
            text = read_bytes(file).decode() if os.path.lexists(file) else ""
            first: ConfigError | None = None
            for draft in drafts(text):
                if (problem := _problem(settings, draft)) is None:
                    replace_file(file, draft.encode(), durable=True)
                    return file
                first = first or problem
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"{file} cannot be changed: {reason(error)}.") from error
    assert first is not None
    told = str(first)
    if _problem(settings, text) is None:  # then it is no line of the file that is meant
        told = _PLACE.sub("", told.removeprefix(str(settings.config_file)), count=1)
        told = f"{told[:1].upper()}{told[1:]}"
    raise ConfigError(f"{told} Nothing was changed.")


def _problem(settings: Settings, text: str) -> ConfigError | None:
    """Return what is wrong with a text as the configuration."""
    try:
        check_profiles(replace(settings, config=read_config(settings.locations, text)))
    except ConfigError as error:
        return error
    return None


def _values(given: str) -> Iterator[Any]:
    """Yield what a person may have meant: a value of TOML, else a text."""
    with suppress(ValueError, RecursionError):
        table = tomllib.loads(f"value = {given}")
        if len(table) == 1:
            yield table["value"]
    yield given


def _with_value(text: str, path: tuple[str, ...], value: Any) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    if len(path) == 1 and path[0] not in document:
        return _with_new_key(text, f"{tomlkit.key(path[0]).as_string()} = {tomlkit.item(value).as_string()}\n")
    node: Any = document
    for number, name in enumerate(path[:-1], 1):
        if name not in node:
            if node is document and document.as_string().strip():
                document.add(tomlkit.nl())
            node[name] = tomlkit.table(is_super_table=number < len(path) - 1)
        node = _table(node[name], path[:number])
    node[path[-1]] = value
    return tomlkit.dumps(document)


def _with_new_key(text: str, line: str) -> str:
    """Return a text with a key above all tables: at its own comment, as `strongroom init` writes it, or at their end.

    Not below a header that is commented out: once it is not, the key would be in that table.
    """
    lines = text.splitlines(keepends=True)
    end = next((number for number, each in enumerate(lines) if _HEADER.match(each)), len(lines))
    begins = f"#{line.partition('=')[0]}="
    at = next((number for number, each in enumerate(lines[:end]) if each.startswith(begins)), None)
    if at is None:
        at = end
        while at < len(lines) and at and lines[at - 1].startswith("#"):
            at -= 1
    before = lines[:at]
    if before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    return "".join([*before, line, *lines[at:]])


def _without(text: str, path: tuple[str, ...], key: str) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    node: Any = document
    for number, name in enumerate(path[:-1], 1):
        node = _table(node.get(name, {}), path[:number])
    if path[-1] not in node:
        raise ConfigError(f"{key} does not stand in the configuration. `strongroom config get {key}` shows what holds.")
    del node[path[-1]]
    return tomlkit.dumps(document)


def _table(value: Any, path: tuple[str, ...]) -> Any:
    if not isinstance(value, dict):
        raise ConfigError(f"`{'.'.join(path)}` is no table of keys; a list of tables is changed in the file itself.")
    return value
