"""A call that waits for approval, as a text that can be edited. Pure.

Rule: the text that is shown is what runs, to the character. A text with invisible characters is shown as JSON with \\u
escapes; where a person types one, the text is shown again before it is sent.
"""

import json
from collections.abc import Container, Mapping
from typing import Any, Final

import msgspec

from supervisor.acp import extensions
from supervisor.clients.console.styled_text import pretty
from supervisor.display.argument_text import argument_text
from supervisor.display.changes import TITLES, counted_unseen
from supervisor.display.command_text import as_arguments, text_argument, time_of, words_of
from supervisor.display.escape import name, visible
from supervisor.display.unique_names import unique_names
from supervisor.rules.edited_rule import edited
from supervisor.rules.rule import Rule
from supervisor.rules.rule_sentence import sentence
from workers.catalog import find_tool

_ON_ONE_LINE: Final = str.maketrans("\n\r\t", "   ")
_AGAIN: Final = "The text held invisible characters; they are written out now. Enter runs it."
_NOT_OFFERED: Final = (
    "No rule can be made of this call: it needs approval each time.",
    "Nothing runs on the real system here: set escalation = true in [shell] to allow that.",
)
_LONGER: Final[Mapping[extensions.Scope, tuple[str, str]]] = {
    "session": ("A rule until this session ends:", ""),
    "always": ("A rule from now on, for this profile on this root:", " (`strongroom rules` lists and revokes it.)"),
}
"""What stands before a rule, and behind the question for it."""
_UNCONFINED: Final = (
    (
        "On the real system it has your rights: your files, every service and process, the network. Its effects are "
        "not shown before, and cannot be undone; protected names are not guarded. Run it there, this once?"
    ),
    "Confirm again, because this cannot be undone: run it on the real system?",
)
_AS_GIVEN: Final[Mapping[extensions.Stage, str]] = {
    "call": "runs it",
    "effects": "applies it",
    "direct": "runs it on the root itself",
    "network": "rehearses it with the network",
    "turn": "goes on",
    "switch": "asks the other model",
    "narrow": "leaves it out",
    "refused": "leaves it at that",
}
"""The effect of Enter on an unchanged text."""
_NO: Final[Mapping[extensions.Stage, str]] = {
    "network": "goes on without",
    "turn": "stops the turn",
    "switch": "asks no other",
    "narrow": "lets it count",
    "refused": "leaves it, and says why",
}
"""The effect of Escape, where it is no mere rejection."""


_REAL: Final[Mapping[extensions.Stage, str]] = {
    "direct": "it runs on the root itself",
    "network": "it gets the network",
    "switch": "this conversation goes to another model",
    "narrow": "this directory asked for less",
}


def typed_yes(request: extensions.ApprovalRequest, kind: str | None = None) -> str:
    """Return why Enter alone is no yes to a request, but "y"; empty where it is one. `kind` is ACP's of the call."""
    if request.stage in _REAL or kind == "fetch":
        return _REAL.get(request.stage, "it leaves this machine")
    effects = request.effects
    if effects is None:
        return ""
    if any(change.protected for change in effects.changes):
        return "it changes protected names"
    if any(change.tracked for change in effects.changes):
        return "it takes away what git tracks"
    if effects.cannot_undo:
        return "not all of it can be undone"
    return f"{effects.unseen} of its changes cannot be seen in full" if effects.unseen else ""


def comes_back(request: extensions.ApprovalRequest) -> bool:
    """Say whether a changed text is rehearsed first, and what it would change asked about; else a yes runs it."""
    tool = find_tool(request.tool)
    return request.stage != "call" and tool is not None and bool(tool.runs)


class WiderApproval(msgspec.Struct, frozen=True):
    """A yes to more than what is shown, and what the person has to say yes to before."""

    text: str
    scope: extensions.Scope = "once"
    unconfined: bool = False
    rule: str = ""
    """What the person made of the rule."""


def offered_rule(request: extensions.ApprovalRequest) -> Rule | None:
    """Return the rule that can be edited before it is made."""
    try:
        return msgspec.convert(request.rule, Rule) if request.rule else None
    except msgspec.ValidationError:
        return None


def with_rule(form: "ApprovalForm", confirmed: WiderApproval, text: str) -> WiderApproval:
    """Return what has to be confirmed for a rule as the person wrote it.

    Raises:
        ValueError: it is none; the text says why.
    """
    offered = offered_rule(form.request)
    if offered is None:
        raise ValueError("This rule cannot be edited.")
    return _longer(confirmed.scope, sentence(edited(offered, text)), text)


def _longer(to: extensions.Scope, covers: str, rule: str = "") -> WiderApproval:
    until, more = _LONGER[to]
    return WiderApproval(f"{until}\n  {name(covers)}\nApply these changes, and make it?{more}", to, rule=rule)


def wider_approvals(form: "ApprovalForm", text: str, to: extensions.Scope | None) -> tuple[str, list[WiderApproval]]:
    """Return what has to be confirmed for a yes that holds for longer, or, with None, outside of the sandbox.

    Where there is no such yes, the first says why.
    """
    request = form.request
    if not (request.covers if to else request.escalation):
        return _NOT_OFFERED[to is None], []
    if form.is_changed(text):
        return "The text was changed: Enter rehearses it first.", []
    if to is None:
        return "", [WiderApproval(question, unconfined=True) for question in _UNCONFINED]
    return "", [_longer(to, request.covers)]


class ApprovalForm:
    """One question's text.

    `text` is what to put into the box; `key` is the argument whose value it is, "" where it is the words of a command,
    the arguments as JSON, or where there is no call, a sentence. `brief` says that a difference shows what is asked
    about, and the box need not.
    """

    def __init__(self, request: extensions.ApprovalRequest) -> None:
        self.request = request
        self.key, self.text = "", ""
        self._time = time_of(request.arguments)
        self._words = words_of(request.tool, request.arguments)
        self._besides: dict[str, Any] = self._time
        """What stays of the arguments when the text is changed."""
        written = text_argument(request.tool, request.arguments) if request.stage == "effects" else None
        self.brief = written is not None
        if request.stage in TITLES:
            self.text = visible(f"{TITLES[request.stage]}? {request.reason}")
        elif self._words is not None and _seen(self._words):
            self.text = self._words
        elif written is not None and _seen(written[1][written[0]]):
            self.key, self._besides = written
            self.text = self._besides[self.key]
        else:
            self._words = None
            self.key, self.text = _laid_out(request.arguments, self._time)
        self.edited: str | None = None
        self._given = self.text

    @property
    def label(self) -> str:
        """What the text is; "" where it says all that is asked."""
        if self.request.stage in TITLES:
            return ""
        kind = self.key or ("words, no shell" if self._words is not None else "")
        return (
            "".join([kind, *(f", {each:g} s at most" for each in self._time.values())]) if kind else "arguments, JSON"
        )

    @property
    def to_read(self) -> str:
        """The text as people read it, where it can be edited as JSON alone."""
        return self.text if self.key or self._words is not None else argument_text(self.request.arguments)

    @property
    def is_escaped(self) -> bool:
        """Whether the box shows some text by its escapes in JSON."""
        return not self.key and self._words is None and "\\" in self.text

    def is_changed(self, text: str) -> bool:
        """Say whether a text is another than what was asked about."""
        return text != self._given

    def promise(self, text: str) -> str:
        """Return what a yes to a text does."""
        if self.is_changed(text):
            return "rehearses it" if comes_back(self.request) else "runs it"
        effects = self.request.effects
        if self.request.stage != "effects" or effects is None:
            return _AS_GIVEN[self.request.stage]
        return f"applies {counted_unseen(effects)}"

    def keys(self, text: str, yes: str, *, engaged: bool) -> list[str]:
        """Return what the keys do to a text, the most important first.

        Args:
            text: as it stands in the box.
            yes: the key that says yes to what was asked about.
            engaged: whether letters change the text.
        """
        request = self.request
        no = f"Esc {_NO.get(request.stage, 'rejects')}"
        if self.is_changed(text):
            return [f"Enter {self.promise(text)}", no, "Alt-Enter new line"]
        keys = [f"{yes} {self.promise(text)}", no]
        keys += ["Alt-S this session", "Alt-A always"] if request.covers else []
        if request.escalation:
            keys.insert(0 if request.stage == "refused" else len(keys), "Alt-U real system")
        return [*keys, "Alt-Enter new line" if engaged else "Tab edits"] if request.editable else keys

    def settle(self, text: str) -> str:
        """Take the text as it stands in the box; return why it cannot run so, "" if it can.

        After "" `edited` is the arguments' JSON to send, None where nothing was changed. After anything else `text` is
        what shall stand in the box.
        """
        self.text = text
        self.edited = None
        if not self.is_changed(text):
            return ""
        if not self.request.editable:
            self.text = self._given
            return "This call cannot be edited."
        try:
            arguments = self._arguments(text)
        except ValueError as error:
            return str(error)
        if _seen(text if self._words is not None or self.key else arguments):
            self.edited = arguments
            return ""
        self._words, self.key = None, ""
        self.text = pretty(_ascii(arguments)) or _ascii(arguments)
        return _AGAIN

    def _arguments(self, text: str) -> str:
        """Return the JSON that a text stands for.

        Raises:
            ValueError: it stands for none; the text says why.
        """
        if self._words is not None:
            try:
                return as_arguments(text, self.request.arguments)
            except ValueError as error:
                raise ValueError(f"These are not the words of a command: {error}.") from error
        if self.key:
            return json.dumps({**self._besides, self.key: text}, ensure_ascii=False)
        try:
            found = json.loads(text, object_pairs_hook=unique_names, parse_constant=_refused)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"This is not JSON: {error}.") from error
        if not isinstance(found, dict):
            raise ValueError("The arguments must be a JSON object, {...}.")  # noqa: TRY004 - of the text, not its type
        return text.translate(_ON_ONE_LINE)


def _laid_out(arguments: str, besides: Container[str]) -> tuple[str, str]:
    """Return the one argument that is edited by itself, with none `besides`, and the text for the box."""
    try:
        given = json.loads(arguments or "{}", object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return "", pretty(arguments) or visible(arguments)
    named = [item for item in given.items() if item[0] not in besides] if isinstance(given, dict) else []
    if len(named) == 1:
        [(key, value)] = named
        if isinstance(value, str) and _seen(value) and _seen(key) and key:
            return key, value
    return "", pretty(arguments or "{}") or visible(arguments)


def _seen(text: str) -> bool:
    """Return whether every character of a text can be seen in the box."""
    return "\t" not in text and visible(text) == text


def _ascii(text: str) -> str:
    return "".join(char if _seen(char) or char == "\n" else json.dumps(char)[1:-1] for char in text)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
