"""Homes made of lines: a program, a text ("NAME = TEXT") or a link ("NAME -> TARGET"); HOME stands for the home."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

PYTHON: Final = ("bin/python3", "lib/python3.11/os.py")
"""What makes a directory the install prefix of a Python."""

SECRETS: Final = (
    *(".ssh/id_rsa", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".pypirc", ".npmrc", ".git-credentials"),
    *(".cargo/credentials.toml", ".condarc", ".local/share/keyrings/login", ".local/share/strongroom/journal.db"),
)
"""Files of a home that no command may read."""

SECRET: Final = "the person's secret"


def tree(home: Path, secrets: Iterable[str]) -> Path:
    """Make a home with secrets; return it."""
    for each in secrets:
        write(home / each, SECRET, 0o600)
    return home


def make(home: Path, lines: Iterable[str]) -> None:
    """Make what the lines say, in the place of what is there."""
    for line in lines:
        name, arrow, target = line.partition(" -> ")
        if arrow:
            link = home / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target.replace("HOME", str(home)))
            continue
        name, equals, text = line.partition(" =")
        write(
            home / name,
            text[1:].replace("HOME", str(home)) if equals else "#!/bin/sh\necho $0\n",
            0o644 if equals else 0o755,
        )


def write(file: Path, text: str, mode: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
