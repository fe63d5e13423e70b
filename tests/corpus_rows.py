"""The rows of the corpora in tests/corpus, and what the values in them stand for."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "corpus"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def rows(*files: str) -> list[dict[str, Any]]:
    """Return the rows of several files, each with its file's defaults."""
    found = [json.loads((_FOLDER / file).read_text("utf-8")) for file in files]
    return [{**corpus.get("defaults", {}), **row} for corpus in found for row in corpus["cases"]]


def value(written: Any, names: Mapping[str, str] = _NONE) -> Any:
    """Return a value of a row with its big values and its variables in place."""
    match written:
        case {"$repeat": [text, times]}:
            return text * times
        case {"$concat": [*parts]}:
            return "".join(value(part, names) for part in parts)
        case dict():
            return {key: value(each, names) for key, each in written.items()}
        case list():
            return [value(each, names) for each in written]
        case str():
            for name, text in names.items():
                written = written.replace(name, text)
    return written
