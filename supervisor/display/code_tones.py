"""Tones for code: what a language's lexer makes of a text, by the name of the file. Pure.

Rule: Pygments is imported when a text of a known language is first shown, and its tokens say where something begins and
ends, never what is printed.
"""

from collections.abc import Iterator, Mapping
from typing import Final

LONGEST: Final = 100_000
"""Characters of a text that are looked at."""

Span = tuple[int, int, str]
"""Where a tone begins, where it ends, and which it is."""

_LANGUAGES: Final[Mapping[str, str]] = {
    "bash": "bash",
    "c": "c",
    "cc": "cpp",
    "cfg": "ini",
    "cpp": "cpp",
    "cs": "csharp",
    "css": "css",
    "dockerfile": "docker",
    "ex": "elixir",
    "exs": "elixir",
    "go": "go",
    "h": "c",
    "hpp": "cpp",
    "hs": "haskell",
    "htm": "html",
    "html": "html",
    "ini": "ini",
    "java": "java",
    "js": "javascript",
    "json": "json",
    "jsx": "javascript",
    "kt": "kotlin",
    "lua": "lua",
    "makefile": "make",
    "md": "markdown",
    "mjs": "javascript",
    "mk": "make",
    "php": "php",
    "pl": "perl",
    "proto": "protobuf",
    "py": "python",
    "pyi": "python",
    "r": "r",
    "rb": "ruby",
    "rs": "rust",
    "scala": "scala",
    "sh": "bash",
    "sql": "sql",
    "svg": "xml",
    "swift": "swift",
    "tf": "terraform",
    "toml": "toml",
    "ts": "typescript",
    "tsx": "typescript",
    "xml": "xml",
    "yaml": "yaml",
    "yml": "yaml",
    "zsh": "bash",
}
"""Pygments' names of languages, by what follows the last dot of a name, or by all of it."""

_TONES: Final[Mapping[tuple[str, ...], str]] = {
    ("Comment",): "dim",
    ("Generic", "Heading"): "bold",
    ("Generic", "Strong"): "bold",
    ("Generic", "Subheading"): "bold",
    ("Keyword",): "magenta",
    ("Literal", "Number"): "cyan",
    ("Literal", "String"): "yellow",
    ("Name", "Class"): "blue",
    ("Name", "Decorator"): "blue",
    ("Name", "Function"): "blue",
    ("Name", "Tag"): "blue",
    ("Operator", "Word"): "magenta",
}
"""Tones of kinds of tokens, by the first one or two words of Pygments' names for them."""


def language_of(path: str) -> str:
    """Return the language of a file by its name; "" where that says nothing."""
    return _LANGUAGES.get(path.rpartition("/")[2].rpartition(".")[2].lower(), "")


def spans(language: str, text: str) -> Iterator[Span]:
    """Yield what of a text has a tone of its own, in its order; what follows without a gap in one tone is one."""
    if not language:
        return
    from pygments.lexers import get_lexer_by_name

    begin = end = 0
    tone = ""
    for at, kind, piece in get_lexer_by_name(language).get_tokens_unprocessed(text[:LONGEST]):
        its = _TONES.get(tuple(kind[:2])) or _TONES.get(tuple(kind[:1]), "")
        if at < end or not piece:
            continue
        if (at, its) != (end, tone):
            if tone:
                yield begin, end, tone
            begin, tone = at, its
        end = at + len(piece)
    if tone:
        yield begin, end, tone
