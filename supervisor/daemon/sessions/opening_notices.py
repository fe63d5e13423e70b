"""Notices that a client is given as a session opens: of what the session lacks, and what to do.

Rule: pure. Each says first, in capitals, what somebody who reads nothing else must know.
"""

from typing import Final

from supervisor.display.escape import one_line
from supervisor.session.session import Session

_NO_MODEL: Final = (
    "NO LANGUAGE MODEL: {why} Until then the offline model answers: it turns plain commands such as "
    "'list **/*.md' or 'read notes/idea.md' into tool calls, and nothing else."
)
_NO_TOOL: Final = (
    "TOOL {tool} IS UNAVAILABLE: its workers {why}. Nothing runs without its sandbox. Run `strongroom doctor`, follow "
    "its advice, and open a new session."
)
_COPIES: Final = (
    "COMMANDS RUN IN COPIES of the root, held by Landlock and seccomp alone and without a network, as this system lets "
    "no sandbox be made. Run `strongroom doctor` to see why."
)

_BROKEN: Final = "AN ENVIRONMENT IS BROKEN: {why}."
_SILENT: Final = (
    "A DIRECTORY OF YOUR PATH DOES NOT ANSWER: {place}. Commands have the programs of those before it. Take it out of "
    "the PATH, and open a new session."
)
_KEEPS: Final = (
    "COMMANDS KEEP THE PROGRAMS of the client that opened this session; your PATH leads to others. To "
    "have yours, open a new session, or this one again while no other client has it open and nothing runs."
)


_KEEPS_KEY: Final = (
    "THE KEY IS THAT of the client that opened this session, and not yours. To have yours, open a new session, or this "
    "one again while no other client has it open and nothing runs."
)
_NARROWED: Final = "NARROWED BY {file}, which lies in the root: {told}. It can take away, and add nothing."
_UNKNOWN_MODEL: Final = (
    "THE MODEL {name} IS NOT KNOWN: it is counted on for a context of {window} tokens and replies of {longest}, and "
    'what it costs is not counted. Set `window`, `max_tokens` and `prices` in [models."{name}"]; `strongroom models` '
    "shows what is known."
)


def opening_notices(substituted: str, session: Session, *, keeps: bool = False, keeps_key: bool = False) -> list[str]:
    """Return what to tell of a session; `substituted` says why it has no language model.

    With `keeps`, it has the programs of another client than the one that is told; with `keeps_key`, the key.
    """
    profile, facts = session.profile, session.model_facts
    model = [_NO_MODEL.format(why=substituted)] if substituted else []
    if facts is not None and not facts.known:
        name = one_line(facts.name, 100)
        model.append(_UNKNOWN_MODEL.format(name=name, window=facts.window, longest=facts.max_tokens))
    has, less = profile.surroundings, profile.narrowing
    told = "; ".join(less.told if less else ()) or "nothing"
    broken = [_BROKEN.format(why=has.venv_problem)] if has and has.venv_problem else []
    copies = [_COPIES] * profile.copies
    return [
        *model,
        *copies,
        *broken,
        *([_SILENT.format(place=one_line(has.silent, 300))] if has and has.silent else []),
        *([_NARROWED.format(file=one_line(less.file, 300), told=told)] if less and less.used is not False else []),
        *[_KEEPS] * keeps,
        *[_KEEPS_KEY] * keeps_key,
        *(_NO_TOOL.format(tool=tool, why=why) for tool, why in profile.unavailable_tools),
    ]
