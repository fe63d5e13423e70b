"""The reference of `config.toml`, made from its keys: for `strongroom init` and for the manual.

Rule: nothing about a key stands here; its description, limits, default and example come with it.
"""

import json
import textwrap
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from supervisor.categories.row import CategoryLimits
from supervisor.config.config_errors import type_words
from supervisor.config.config_reader import CONFIG_FILE

_WIDTH: Final = 120
_HEAD: Final = """\
# Strongroom's configuration. Every key is optional; what is commented out is the default, or an example where there
# is none. A change counts from the next session on that is opened; open ones keep what they were opened with.
"""


class _Key(NamedTuple):
    name: str
    value: str
    """In TOML: the default, or an example where there is none."""
    default: bool
    kind: str
    about: str


class _Table(NamedTuple):
    header: str
    """"[web]"; empty for the keys above all tables."""
    about: str
    keys: list[_Key]


def as_toml() -> str:
    """Return a configuration in which everything is commented out: prose is "# text", a key is "#key = value"."""
    return "\n".join((_HEAD, *("\n".join(_toml_lines(table)) + "\n" for table in _tables())))


def as_markdown() -> str:
    """Return the reference: for each table a line and its keys."""
    lines = []
    for header, about, keys in _tables():
        lines += [*((f"`{header}`: {about}", "") if header else ()), "| key | default | value |", "|---|---|---|"]
        for key in keys:
            value = f"`{key.value}`" if key.default else f"none; for example `{key.value}`"
            told = f"{key.about} {key.kind[0].upper()}{key.kind[1:]}.".strip().replace("|", "/")
            lines.append(f"| `{key.name}` | {value} | {told} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def _toml_lines(table: _Table) -> Iterator[str]:
    yield from textwrap.wrap(table.about, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    if table.header:
        yield f"#{table.header}"
    for key in table.keys:
        yield from textwrap.wrap(key.about, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
        line = f"#{key.name} = {key.value}"
        yield from textwrap.wrap(line, _WIDTH, subsequent_indent="#", break_long_words=False, break_on_hyphens=False)


def _tables() -> Iterator[_Table]:
    """Yield the keys above all tables, then each table."""
    whole = CONFIG_FILE()
    tables = [each for each in msgspec.structs.fields(CONFIG_FILE) if _struct_of(each.type) is not None]
    yield _Table("", "", [_key(each, whole) for each in msgspec.structs.fields(CONFIG_FILE) if each not in tables])
    for field in tables:
        struct, value = _struct_of(field.type), getattr(whole, field.name)
        assert struct is not None
        if all(each.type is CategoryLimits for each in msgspec.structs.fields(struct)):
            yield from _limits(field.name, value)
        else:
            header = field.name if value.__class__ is struct else _example_header(field)
            keys = [_key(each, value) for each in msgspec.structs.fields(struct)]
            yield _Table(f"[{header}]", _first_paragraph(struct), keys)


def _limits(section: str, value: Any) -> Iterator[_Table]:
    """Yield the first category's limits, and of the others what differs."""
    fields, usual = msgspec.structs.fields(CategoryLimits), CategoryLimits()
    for number, category in enumerate(value.__struct_fields__):
        limits = getattr(value, category)
        keys = [_key(each, limits) for each in fields if getattr(limits, each.name) != getattr(usual, each.name)]
        if number == 0:
            about = f"{_first_paragraph(CategoryLimits)} Categories: {', '.join(value.__struct_fields__)}."
            yield _Table(f"[{section}.{category}]", about, [_key(each, limits) for each in fields])
        elif keys:
            about = f"Defaults of {category} that differ from those of {value.__struct_fields__[0]}."
            yield _Table(f"[{section}.{category}]", about, [key._replace(about="") for key in keys])


def _struct_of(kind: Any) -> type[msgspec.Struct] | None:
    """Return the keys of a table, of one of several tables, or of one in a list."""
    match _plain(inspect.type_info(kind)):
        case (
            inspect.StructType(cls=struct)
            | inspect.DictType(value_type=inspect.StructType(cls=struct))
            | inspect.VarTupleType(item_type=inspect.StructType(cls=struct))
        ):
            return struct
    return None


def _plain(info: inspect.Type) -> inspect.Type:
    return info.type if isinstance(info, inspect.Metadata) else info


def _example_header(field: msgspec.structs.FieldInfo) -> str:
    examples = _schema(field).get("examples")
    return f"{field.name}.{_toml_name(examples[0])}" if examples else f"[{field.name}]"


def _toml_name(name: str) -> str:
    return name if name.replace("-", "").isalnum() and name.islower() and "-" not in name else json.dumps(name)


def _key(field: msgspec.structs.FieldInfo, within: Any) -> _Key:
    schema = _schema(field)
    default = getattr(within, field.name, field.default)
    shown = default if "examples" not in schema else schema["examples"][0]
    about = schema.get("description", "")
    return _Key(field.name, toml_value(shown), "examples" not in schema, type_words(field.type), about)


def _schema(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    info = inspect.type_info(field.type)
    return (info.extra_json_schema or {}) if isinstance(info, inspect.Metadata) else {}


def _first_paragraph(struct: type[msgspec.Struct]) -> str:
    return " ".join((struct.__doc__ or "").partition("\n\n")[0].split())


def toml_value(value: Any) -> str:
    """Return a value as TOML has it, on one line."""
    match value:
        case bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case tuple() | list():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            pairs = (f"{json.dumps(key)} = {toml_value(each)}" for key, each in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case _:
            return str(value)
