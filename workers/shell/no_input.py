"""Signs in the output of a command that it wanted input, which no command has. Pure.

Rule: nothing tells whether a program has read what is empty, so its output must; what is said of a sign is true of
every command, should the sign mislead.
"""

import re
from typing import Final

NOTE: Final = (
    "its input was empty, and there is no terminal: whatever asks gets end of file at once; give the answers in the "
    "command itself, by an option such as --yes or -m, a file, or a pipe such as printf 'y\\n' | ..."
)

_LOOKED_AT: Final = 2**12
"""Characters of the end of each stream."""

_QUESTION: Final = r"(?i)[:?>)\]] \Z|\S[?:]\Z|(?:\[y/n\]|\(y/n\)|\[yes/no\]|\(yes/no\b)[^\n]*\n?\Z"
"""The last line, which has no end, or in which somebody is asked for a yes."""

_COMPLAINT: Final = (
    r"(?i)EOFError|EOF when reading|not (?:from |to )?a (?:tty|terminal)|terminal is (?:required|dumb)|prompts disabled"
    r"|no tty present|/dev/tty\S* No such|no controlling terminal|inappropriate ioctl for device"
)

_READERS: Final = (
    r"(?:\S*/)?(?:(?:(?:ba|da|z)?sh|bc|cat|head|less|more|node|perl|php|psql|python3?|ruby|sort|tail|wc)"
    r"(?: +-[^cem\s]*)*|(?:read|tee|tr|xargs)\b[^<|&;]*) *(?:\Z|[;&|>\n])"
)
"""Programs that read their input where they are told nothing else, with nothing but options."""


def remarks(command: bytes, stdout: str, stderr: str) -> list[str]:
    """Return what is to be said of the input of a command, by its text and by what it printed."""
    if not stdout and not stderr:
        return ["its input was empty"] if re.match(_READERS, command.decode("utf-8", "replace")) else []
    ends = [stream[-_LOOKED_AT:] for stream in (stdout, stderr)]
    return [NOTE] if any(re.search(_QUESTION, each) or re.search(_COMPLAINT, each) for each in ends) else []
