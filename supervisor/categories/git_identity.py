"""The person's name and e-mail address, as their own settings of git say; nothing else of these is read.

Rule: what `git config --global --get` would print: of two files the later one counts, of two lines the last; what
others include is not followed. No program is run. Syntax: git-config(1), "Syntax".
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from supervisor.system import safe_files

_LONGEST: Final = 2**20
_SECTION: Final = re.compile(r'\[\s*([A-Za-z0-9.-]+)\s*("(?:[^"\\\n]|\\.)*")?\s*\]')
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:(=)|(?=[#;\n]|\Z))")
_VALUE: Final = re.compile(r'"((?:[^"\\\n]|\\(?:.|\n))*)"|\\\n|(\\.)|([#;][^\n]*)|([^"\\#;\n]+)|(\n|\Z)|.', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.|\n)", re.DOTALL)
_MEANT: Final = {"n": "\n", "t": "\t", "b": "\b", "\n": ""}


def git_identity(home: str, configuration: str = "") -> tuple[str, str]:
    """Return name and e-mail address, each empty where it is not set; `configuration` is XDG_CONFIG_HOME."""
    found = {"name": "", "email": ""}
    base = configuration if os.path.isabs(configuration) else os.path.join(home, ".config")
    for file in (Path(base, "git/config"), Path(home, ".gitconfig")):
        try:
            text = safe_files.read_bytes(file, _LONGEST).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        found |= {key: value for section, key, value in _settings(text) if section == "user" and key in found}
    return found["name"], found["email"]


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of each setting, up to the first line that git would not read."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    at, section = 0, ""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] in "#;":
            at = (text + "\n").index("\n", at)
        elif found := _SECTION.match(text, at):
            section, at = found[1].lower() + (f" {found[2]}" if found[2] else ""), found.end()
        elif found := _KEY.match(text, at):
            value, at = _value(text, found.end()) if found[2] else ("", found.end())
            yield section, found[1].lower(), value
        else:
            return


def _value(text: str, at: int) -> tuple[str, int]:
    """Return the value that begins at a place, and where it ends."""
    parts: list[str] = []
    at += len(text[at:]) - len(text[at:].lstrip(" \t"))
    bare = 0
    """How many characters at the end stand outside of quotes, blanks of which do not count."""
    while found := _VALUE.match(text, at):
        at = found.end()
        quoted, escaped, _, plain, end = found.groups()
        if quoted is not None:
            parts, bare = ["".join(parts), _unescaped(quoted)], 0
        elif escaped:
            parts, bare = ["".join(parts), _unescaped(escaped)], 0
        elif plain:
            parts.append(plain)
            bare += len(plain)
        elif end is not None:
            break
    whole = "".join(parts)
    return whole[: len(whole) - bare] + whole[len(whole) - bare :].rstrip(), at


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), text)
