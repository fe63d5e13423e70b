"""Words for what is wrong with a file that a person wrote: the key, the value that was given, what it must be.

Rule: pure. What came from the file is cut, and shown so that no terminal acts on it.
"""

import json
import re
import types
import typing
from collections.abc import Collection
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from supervisor.display.escape import name
from supervisor.display.unique_names import RepeatedName

_WIDTH: Final = 80
"""Characters of an offending value that are shown."""
_DIGITS: Final = 256
"""Bits above which a number is shown in hexadecimal: Python limits what it writes out as decimal digits."""
_CREDENTIALS: Final = re.compile(r"(?<=//)\S*(?=@)|(?<=[?&])[\w.~-]+=[^\s&\"']+")
"""What stands before the last @ of an address, and in its query."""
_SECRET: Final = frozenset({"headers", "key_env"})
"""Keys in whose places people write keys and passwords."""
_BYTE_ORDER_MARK: Final = "\ufeff"

_Path = tuple[str | int, ...]
"""Keys, and numbers of a list's items that begin with 1."""


def cut(text: str, width: int = _WIDTH) -> str:
    """Return text as one harmless line of at most `width` characters."""
    flat = name(text)
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def shown(value: Any) -> str:
    """Return a value of TOML or JSON as a person would have written it, cut, and without the password of an address."""
    match value:
        case str():
            return f"'{cut(_CREDENTIALS.sub('[removed]', value))}'"
        case bool() | None:
            return json.dumps(value)
        case int():
            return cut(str(value) if value.bit_length() <= _DIGITS else hex(value))
        case dict() | list():
            try:
                return cut(_CREDENTIALS.sub("[removed]", json.dumps(value, default=str, ensure_ascii=False)))
            except (ValueError, RecursionError):  # a number of thousands of digits, or as many brackets
                return "a table" if isinstance(value, dict) else "a list"
        case _:
            return cut(str(value))


def unknown(what: str, given: str, known: Collection[str]) -> str:
    """Return a sentence about a name that is none of those that are known."""
    return f"unknown {what} {shown(given)}; " + (nearest(given, known) or f"known: {', '.join(known)}.")


def nearest(given: str, known: Collection[str]) -> str:
    """Return a question about the name that was meant, "" where none is like it."""
    import difflib

    near = difflib.get_close_matches(given, known, n=1, cutoff=0.5) if len(given) <= _WIDTH else []
    return f"did you mean '{near[0]}'?" if near else ""


class ValueProblem(NamedTuple):
    """A mistake: a sentence, and the keys that lead to it. Without a mistake both are empty."""

    text: str = ""
    path: _Path = ()


def problem_in(given: Any, wanted: Any, path: _Path = ()) -> ValueProblem:
    """Return the first thing that is wrong with a value of TOML or JSON.

    Args:
        given: the value.
        wanted: a type, as `msgspec.convert` takes it.
        path: the keys that lead to the value.
    """
    bare = _bare(wanted)
    if isinstance(given, dict) and _is_struct(bare) and (problem := _misnamed(given, bare, path)).text:
        return problem
    if isinstance(given, str) and (names := _choices(inspect.type_info(wanted))) and given not in names:
        must = nearest(given, names) or f"it must be one of {', '.join(names)}."
        return ValueProblem(f"{_called(path)} is {shown(given)}; {must}", path)
    parts = _parts(given, bare, path)
    for part in parts:
        if (inner := problem_in(*part)).text:
            return inner
    try:
        msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        if parts:  # a struct's own word about itself
            return ValueProblem(f"{_called(path)}: {str(error).partition(' - at `$')[0]}".removeprefix(": "), path)
        value = shown(given) if _SECRET.isdisjoint(path) else "wrong (not repeated, as it may be a secret)"
        return ValueProblem(f"{_called(path) or 'it'} is {value}; it must be {type_words(wanted)}.", path)
    return ValueProblem()


def _bare(wanted: Any) -> Any:
    """Return a type without what annotates it, and without the None of what may be left out."""
    bare = wanted.__origin__ if typing.get_origin(wanted) is Annotated else wanted
    members = [each for each in typing.get_args(bare) if each is not type(None)]
    is_union = typing.get_origin(bare) in {typing.Union, types.UnionType}
    return _bare(members[0]) if is_union and len(members) == 1 else bare


def _is_struct(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)


def _misnamed(given: dict[str, Any], struct: type[msgspec.Struct], path: _Path) -> ValueProblem:
    """Say which key of a table there is not, or which it needs."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    within = f"{_called(path)}: " if path else ""
    for key in given:
        if key not in fields:
            return ValueProblem(within + unknown("name", key, fields), (*path, key))
    for key, field in fields.items():
        if field.required and key not in given:
            return ValueProblem(f"{within}`{key}` is missing; it must be {type_words(field.type)}.", path)
    return ValueProblem()


def _parts(given: Any, bare: Any, path: _Path) -> list[tuple[Any, Any, _Path]]:
    """Return what a value consists of, with the types that its parts must have."""
    origin, arguments = typing.get_origin(bare), typing.get_args(bare)
    if isinstance(given, dict) and _is_struct(bare):
        wanted = {field.encode_name: field.type for field in msgspec.structs.fields(bare)}
        return [(value, wanted[key], (*path, key)) for key, value in given.items()]
    if isinstance(given, dict) and origin is dict:
        return [(value, arguments[1], (*path, key)) for key, value in given.items()]
    if isinstance(given, list) and origin is tuple:
        return [(value, arguments[0], (*path, number)) for number, value in enumerate(given, 1)]
    return []


def unreadable(error: ValueError | RecursionError, text: str = "") -> str:
    """Return why a text cannot be read as TOML or JSON, a clause about "it".

    Args:
        error: what reading it raised.
        text: the whole text, where it was decoded.
    """
    import tomllib

    match error:
        case UnicodeDecodeError():
            line = error.object.count(b"\n", 0, error.start) + 1
            return f"it is not UTF-8: line {line} has the byte 0x{error.object[error.start]:02x}"
        case RecursionError():
            return "it is nested too deep"
        case _ if text.startswith(_BYTE_ORDER_MARK):
            return "it begins with a byte order mark; save it as UTF-8 without one"
        case json.JSONDecodeError():
            return f"it is not valid JSON: {error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}"
        case tomllib.TOMLDecodeError():
            return f"it is not valid TOML: {cut(str(error))}"
        case _:
            return str(error) if isinstance(error, RepeatedName) else "a number in it has too many digits"


def _called(path: _Path) -> str:
    """Return how a person finds a value: "`web.allow`", or "number 2 of `web.allow`"."""
    text, names = "", list[str]()
    for part in path:
        if isinstance(part, str):
            names.append(cut(part))
        else:
            text, names = f"number {part} of {_joined(names, text)}", []
    return _joined(names, text) if names else text


def _joined(names: list[str], within: str) -> str:
    return " of ".join(filter(None, (f"`{'.'.join(names)}`" if names else "", within)))


def type_words(wanted: Any) -> str:
    """Return what a value of a type is, in words: "a whole number from 1 to 64"."""
    return _words(inspect.type_info(wanted))


def one_of(names: Collection[str]) -> msgspec.Meta:
    """Return what annotates a text that must be one of some names, where these are known to the program alone."""
    return msgspec.Meta(extra_json_schema={"enum": list(names)})


def _choices(info: inspect.Type) -> list[str]:
    """Return the texts that are allowed, where they are listed."""
    match info:
        case inspect.Metadata(extra_json_schema={"enum": [*names]}):
            return names
        case inspect.Metadata():
            return _choices(info.type)
        case inspect.UnionType():
            names = [name for each in info.types for name in _choices(each)]
            either = any(isinstance(each, inspect.BoolType) for each in info.types) and names
            return [*(("true", "false") if either else ()), *names]
        case inspect.LiteralType():
            return [str(value) for value in info.values]
    return []


_PLAIN_WORDS: Final[dict[type[inspect.Type], str]] = {
    inspect.BoolType: "true or false",
    inspect.DictType: "a table",
    inspect.DateType: "a date like 2027-06-30",
}


def _words(info: inspect.Type) -> str:  # noqa: PLR0911 - one for each kind of type that says more than its name
    if names := _choices(info):
        return f"one of {', '.join(names)}"
    match info:
        case inspect.Metadata():
            return _words(info.type)
        case inspect.UnionType():
            return " or ".join(_words(each) for each in info.types if not isinstance(each, inspect.NoneType))
        case inspect.IntType() | inspect.FloatType():
            return f"a {'whole ' if isinstance(info, inspect.IntType) else ''}number{_range(info)}"
        case inspect.StrType(min_length=least, max_length=most):
            return "a text" if most is None else f"a text of {least or 0} to {most} characters"
        case inspect.StructType():
            return f"a table with {', '.join(field.encode_name for field in info.fields)}"
        case inspect.VarTupleType(item_type=inspect.StructType()):
            return "a list of tables, each begun by a line [[...]]"
    return _PLAIN_WORDS.get(type(info), "a list")


def _range(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {info.ge} to {info.le}"
    lower = f", {info.ge} or more" if info.ge is not None else f" above {info.gt}" if info.gt is not None else ""
    return " and".join(filter(None, (lower, f" up to {info.le}" if info.le is not None else "")))
