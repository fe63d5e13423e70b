"""What is wrong with what a person wrote into a file, in words.

Rule: pure. A complaint names the key, the value that was given and what it must be. What came from the file is cut, and
shown so that no terminal acts on it; no library's advice to programmers is passed on.
"""

import difflib
import json
import re
import tomllib
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from supervisor.display.escape import name

_WIDTH: Final = 80
"""Characters of an offending value that are shown."""
_DIGITS: Final = 256
"""Bits above which a number is shown in hexadecimal: Python limits what it writes out as decimal digits."""
_LISTS: Final = (list, tuple, set, frozenset)
_PLACED: Final = re.compile(r"(.*) \(at (line ([0-9]+), column [0-9]+|end of document)\)", re.DOTALL)
_KEY: Final = re.compile(r"""\s*([^="'\[\]]+|"[^"]*"|'[^']*')=""")
_BYTE_ORDER_MARK: Final = "\ufeff"

_Path = tuple[str | int, ...]
"""Keys, and numbers of a list's items that begin with 1."""


class AllowedTexts(NamedTuple):
    """The texts that a key may have, where its type does not say so, and what they are called."""

    what: str
    known: Collection[str]


_NO_CHOICES: Final[Mapping[str, AllowedTexts]] = MappingProxyType({})


def cut(text: str, width: int = _WIDTH) -> str:
    """Return text as one harmless line of at most `width` characters."""
    flat = name(text)
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."


def shown(value: Any) -> str:
    """Return a value of TOML or JSON as a person would have written it, cut."""
    match value:
        case str():
            return f"'{cut(value)}'"
        case bool() | None:
            return json.dumps(value)
        case int():
            return cut(str(value) if value.bit_length() <= _DIGITS else hex(value))
        case dict() | list():
            try:
                return cut(json.dumps(value, default=str, ensure_ascii=False))
            except (ValueError, RecursionError):  # a number of thousands of digits, or as many brackets
                return "a table" if isinstance(value, dict) else "a list"
        case _:
            return cut(str(value))


def unknown(what: str, given: str, known: Collection[str]) -> str:
    """Return a complaint about a name that is none of those that are known."""
    near = difflib.get_close_matches(given, known, n=1, cutoff=0.5) if len(given) <= _WIDTH else []
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    return f"unknown {what} {shown(given)}; {hint}"


def complaint(given: Any, wanted: Any, choices: Mapping[str, AllowedTexts] = _NO_CHOICES, path: _Path = ()) -> str:
    """Return the first thing that is wrong with a value of TOML or JSON; "" where it is what is wanted.

    Args:
        given: the value.
        wanted: a type, as `msgspec.convert` takes it.
        choices: the texts that keys may have, by key.
        path: the keys that lead to the value.
    """
    parts = _parts(given, wanted, path)
    inner = (complaint(value, each, choices, deeper) for value, each, deeper in parts)
    found = _misnamed(given, wanted, choices, path) or next(filter(None, inner), "")
    return found or _of_itself(given, wanted, choices, path)


def unreadable(error: ValueError | RecursionError, text: str = "") -> str:
    """Return why a text cannot be read as TOML or JSON, a clause about "it".

    Args:
        error: what reading it raised.
        text: the whole text, where it was decoded.
    """
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
            return f"it is not valid TOML: {_toml(str(error), text)}"
        case _:
            return "a number in it has too many digits"


def _toml(message: str, text: str) -> str:
    placed = _PLACED.fullmatch(message)
    if placed is None:
        return cut(message)
    lines = text.rstrip().split("\n")
    number = int(placed[3] or len(lines))
    place = placed[2] if placed[3] else f"line {number}, the last one"
    if not placed[1].startswith("Cannot "):
        return f"{cut(placed[1])} at {place}"
    line = "".join(lines[number - 1 : number]).strip()
    if line.startswith("["):
        table = line.strip("[] \t")
        return f"line {number} names [{cut(table)}] again; where there may be several, begin each with [[{cut(table)}]]"
    key = _KEY.match(line)
    return f"line {number} gives `{cut((key[1] if key else line).strip())}` a value, and it has one already"


def _misnamed(given: Any, wanted: Any, choices: Mapping[str, AllowedTexts], path: _Path) -> str:
    """Complain about a table's keys: first those that there are not, since a needed one may be among them misspelt."""
    struct = next((each for each in _members(wanted) if _is_struct(each)), None)
    if struct is None or not isinstance(given, dict):
        return ""
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    within = f"{_called(path)}: " if path else ""
    if struct.__struct_config__.forbid_unknown_fields:
        for key in given:
            if key not in fields:
                return within + unknown("name", key, fields)
    for key, field in fields.items():
        if field.required and key not in given:
            return f"{within}`{key}` is missing; it must be {_expected(field.type, choices.get(key))}"
    return ""


def _parts(given: Any, wanted: Any, path: _Path) -> Iterator[tuple[Any, Any, _Path]]:
    """Yield what a value consists of, with the types that its parts must have."""
    for each in _members(wanted):
        arguments = typing.get_args(each)
        if isinstance(given, dict) and _is_struct(each):
            for field in msgspec.structs.fields(each):
                if field.encode_name in given:
                    yield given[field.encode_name], field.type, (*path, field.encode_name)
        elif isinstance(given, dict) and typing.get_origin(each) is dict:
            for key, value in given.items():
                yield value, arguments[1], (*path, key)
        elif isinstance(given, list) and typing.get_origin(each) in _LISTS:
            for number, value in enumerate(given, 1):
                yield value, arguments[0], (*path, number)


def _of_itself(given: Any, wanted: Any, choices: Mapping[str, AllowedTexts], path: _Path) -> str:
    """Complain about a value whose parts are well."""
    key = path[-1] if path else ""
    choice = choices.get(key) if isinstance(key, str) else None
    if choice is not None and isinstance(given, str):
        return "" if given in choice.known else unknown(choice.what, given, choice.known)
    try:
        msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        if isinstance(given, dict) and any(_is_struct(each) for each in _members(wanted)):  # its own word about itself
            return f"{_called(path)}: {str(error).partition(' - at `$')[0]}".removeprefix(": ")
        return f"{_called(path) or 'it'} is {shown(given)}; it must be {_expected(wanted, choice)}"
    return ""


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


def _members(wanted: Any) -> tuple[Any, ...]:
    """Return the types that a value may have, bare of what else is said of them."""
    origin = typing.get_origin(wanted)
    if origin is Annotated:
        return _members(wanted.__origin__)
    if origin in (typing.Union, types.UnionType):
        return tuple(member for each in typing.get_args(wanted) for member in _members(each))
    return (wanted,)


def _is_struct(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)


def _expected(wanted: Any, choice: AllowedTexts | None) -> str:
    if choice is not None:
        return f"one of {', '.join(choice.known)}"
    return _words(msgspec.inspect.type_info(wanted))


def _words(info: msgspec.inspect.Type) -> str:  # noqa: PLR0911 - one for each kind of type
    match info:
        case msgspec.inspect.UnionType():
            return " or ".join(_words(each) for each in info.types if not isinstance(each, msgspec.inspect.NoneType))
        case msgspec.inspect.IntType():
            return f"a whole number{_range(info.ge, info.gt, info.le, info.lt)}"
        case msgspec.inspect.FloatType():
            return f"a number{_range(info.ge, info.gt, info.le, info.lt)}"
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.StrType():
            return f"a text{_length(info.min_length, info.max_length)}"
        case msgspec.inspect.LiteralType():
            return f"one of {', '.join(map(str, info.values))}"
        case msgspec.inspect.StructType():
            return f"a table with {', '.join(field.encode_name for field in info.fields)}"
        case msgspec.inspect.DictType():
            return "a table"
        case msgspec.inspect.DateType():
            return "a date like 2027-06-30"
        case _:
            return "a list"


def _range(least: float | None, above: float | None, most: float | None, below: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least} to {most}"
    lower = f", {least} or more" if least is not None else f" above {above}" if above is not None else ""
    upper = f" up to {most}" if most is not None else f" below {below}" if below is not None else ""
    return " and".join(filter(None, (lower, upper)))


def _length(least: int | None, most: int | None) -> str:
    if most is None:
        return f" of {least} characters or more" if least else ""
    return f" of {least or 0} to {most} characters"
