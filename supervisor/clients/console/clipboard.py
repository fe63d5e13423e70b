"""The terminal's clipboard, by OSC 52, and `/copy`.

Rule: what is copied is what is shown, with no control character but line ends and tabs, so that nothing acts where it
is pasted. A terminal never says whether it has taken something; where it is known not to, a word says so.
"""

import base64
import re
from collections.abc import Mapping
from typing import Final

from supervisor.clients.console.session_controller import SessionController
from supervisor.clients.console.shown import ShownAnswer
from supervisor.display.escape import visible
from supervisor.display.proposed_effects import size
from supervisor.errors import ConfigError

_LONGEST: Final = 74_000
"""Bytes that terminals take at once; of more than 100,000 characters of base64, many take nothing."""
_WITHOUT: Final = ("", "dumb", "linux")
_DOUBTS: Final[Mapping[tuple[str, str], str]] = {
    ("TERM", r"tmux|screen"): "tmux takes it only with `set -g set-clipboard on`",
    ("VTE_VERSION", r"\d"): "terminals that stand on VTE, such as GNOME's, do not take it",
    ("TERM_PROGRAM", "Apple_Terminal"): "Apple's Terminal does not take it",
}
"""Variables that tell terminals of which one is known, and what to say."""
_FENCE: Final = re.compile("`{3,}|~{3,}")
CODE: Final = "code"


def sequence(text: str, terminal: str) -> str:
    """Return what makes a terminal, by its name, TERM, keep a text.

    Raises:
        ConfigError: it takes none, or not so much.
    """
    if terminal in _WITHOUT:
        raise ConfigError("This terminal takes nothing for its clipboard.")
    data = visible(text, prose=True).encode("utf-8", "replace")
    if len(data) > _LONGEST:
        raise ConfigError(f"This is {size(len(data))}; terminals take {size(_LONGEST)} at once. /export writes a file.")
    return f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"


def doubt(variables: Mapping[str, str]) -> str:
    """Return why the terminal may not have taken it, a clause; "" where nothing speaks against it."""
    found = (why for (name, pattern), why in _DOUBTS.items() if re.match(pattern, variables.get(name, "")))
    return next(found, "")


async def copy(controller: SessionController, argument: str) -> None:
    """Copy the last answer, the last code block of it, or the output of a call.

    Raises:
        ConfigError: there is none, or nothing takes it.
    """
    text, what = _wanted(controller, argument)
    why = controller.screen.copy(text)
    told = f"Copied {what}: {size(len(text.encode('utf-8', 'replace')))}."
    controller.say(f"{told} If it is not in your clipboard: {why}." if why else told)


def _wanted(controller: SessionController, argument: str) -> tuple[str, str]:
    """Return the text that is to be copied, and what it is."""
    if argument not in ("", CODE):
        call = controller.state.numbered(argument.removeprefix("#"))
        if call is None or not call.output:
            raise ConfigError(f"There is no call {argument!r} with an output.")
        return call.output, f"the output of #{call.number}"
    answers = [entry.text for entry in controller.state.entries if isinstance(entry, ShownAnswer)]
    if not argument and answers:
        return answers[-1].strip("\n"), "the answer"
    blocks = [block for answer in answers for block in code_blocks(answer)]
    if not blocks:
        raise ConfigError("There is no code block yet." if argument else "There is no answer yet.")
    return blocks[-1], "the code"


def code_blocks(answer: str) -> list[str]:
    """Return what stands in an answer's fences, without the indentation of these."""
    blocks: list[str] = []
    block: list[str] = []
    fence = indent = ""
    for line in answer.split("\n"):
        text = line.lstrip(" \t")
        if not fence and (begins := _FENCE.match(text)) is not None:
            fence, indent, block = begins[0], line.removesuffix(text), []
        elif fence and text.startswith(fence) and not text.strip(f"{fence[0]} \t"):
            blocks.append("\n".join(block))
            fence = ""
        else:
            block.append(line.removeprefix(indent))
    return blocks
