"""Events of a session as a client hears them, and the answer to an approval request.

Rule: a listener is one function. It is called in the thread that reads, in the order in which things happened, and must
not block.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from supervisor.acp import extensions, jsonrpc, schema


class PermissionPrompt:
    """An approval that the daemon requests. It is answered once, by `allow` or `reject`, from any thread."""

    def __init__(self, number: jsonrpc.Id, params: schema.PermissionParams, reply: Callable[[Any], None]) -> None:
        self.number = number
        self.params = params
        self._reply = reply

    @property
    def request(self) -> extensions.ApprovalRequest:
        """The call to decide about, with the model's exact arguments."""
        return msgspec.convert((self.params.meta or {})[extensions.REVIEW], extensions.ApprovalRequest)

    def allow(
        self, edited: str | None = None, *, scope: extensions.Scope = "once", unconfined: bool = False, rule: str = ""
    ) -> None:
        """Say yes.

        Args:
            edited: the JSON text of the arguments, where the person changed them.
            scope: for how long; more than once where `request.covers` says what that allows.
            unconfined: let this one command run outside of the sandbox, where `request.escalation` offers it.
            rule: what the person made of the rule that was offered, JSON; "" where they took it as it was.
        """
        meta: dict[str, Any] = {} if edited is None else {extensions.EDITED: msgspec.Raw(edited.encode())}
        meta |= {} if scope == "once" else {extensions.SCOPE: scope}
        meta |= {extensions.RULE: msgspec.Raw(rule.encode())} if rule else {}
        meta |= {extensions.UNCONFINED: True} if unconfined else {}
        self._answer(schema.PermissionOutcome(outcome="selected", option_id="allow_once"), meta)

    def reject(self, remark: str = "") -> None:
        """Say no; `remark` is told to the model."""
        meta = {extensions.REMARK: remark} if remark else {}
        self._answer(schema.PermissionOutcome(outcome="selected", option_id="reject_once"), meta)

    def decline(self, remark: str = "") -> None:
        """Answer for nobody: no call runs, no turn is stopped; what else is asked about is left open."""
        match self.request.stage:
            case "turn":
                self.allow()
            case "switch" | "narrow":
                self._answer(schema.PermissionOutcome(outcome="cancelled"), {})
            case _:
                self.reject(remark)

    def _answer(self, outcome: schema.PermissionOutcome, meta: dict[str, Any]) -> None:
        self._reply(schema.PermissionResult(outcome=outcome, meta=meta or None))


class PromptWithdrawn(NamedTuple):
    """A prompt that needs no answer any more: somebody else has answered, or the turn has ended."""

    prompt: PermissionPrompt


class ConnectionLost(NamedTuple):
    """The end of a connection, without `Link.close`; never heard of one that was not let in."""

    why: str


SessionEvent = schema.SessionUpdate | extensions.TurnState | PermissionPrompt
"""An event of a session: an update, a state that its turn has entered, or an approval request."""

LinkEvent = SessionEvent | PromptWithdrawn | ConnectionLost

Listener = Callable[[LinkEvent], None]


def approving(tool: str) -> Listener:
    """Return what approves the effects of a tool as the person who saw them before, and nothing else."""

    def listen(event: LinkEvent) -> None:
        if isinstance(event, PermissionPrompt) and (event.request.tool, event.request.stage) == (tool, "effects"):
            event.allow()
        else:
            decline(event)

    return listen


def decline(event: LinkEvent) -> None:
    """Listen to nothing, and reject each approval request: for a client without a person."""
    if isinstance(event, PermissionPrompt):
        event.decline()
