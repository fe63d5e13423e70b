"""`/budget`: what a session's budgets still hold, and another budget for its turn or for itself.

Rule: what a person gives here is a fact of the session, and goes before what is configured.
"""

from collections.abc import Sequence
from typing import Final, Literal

from supervisor.agent.allowance import told
from supervisor.daemon.sessions.open_session import OpenSession
from supervisor.errors import ConfigError
from supervisor.journal.facts import BudgetChanged

_USAGE: Final = "Type /budget, /budget turn 500000 tokens, /budget session 2.50 cost, or /budget turn 600 seconds."
_WORDS: Final = 3


def budget_lines(session: OpenSession, words: Sequence[str], by: str) -> list[str]:
    """Return what the budgets hold, a line each, after having changed one of them if that is asked for.

    Raises:
        ConfigError: the words make no sense.
        JournalError: the change cannot be recorded.
    """
    conversation = session.session.conversation
    if words:
        conversation.change_budget(_changed(session, words, by))
        session.go_on()
    currency = conversation.allowance.ledger.config.currency
    scopes = conversation.allowance.scopes()
    return [f"{each.of}: {told(each, currency)}" for each in scopes] or ["There is no budget: nothing is limited."]


def _changed(session: OpenSession, words: Sequence[str], by: str) -> BudgetChanged:
    if len(words) != _WORDS or words[0] not in ("turn", "session"):
        raise ConfigError(_USAGE)
    of: Literal["turn", "session"] = "turn" if words[0] == "turn" else "session"
    try:
        amount = float(words[1])
    except ValueError:
        amount = -1.0
    if not 0 <= amount <= 1e12 or words[2] not in ("tokens", "cost", "seconds"):  # noqa: PLR2004 - beyond any use
        raise ConfigError(_USAGE)
    scopes = session.session.conversation.allowance.scopes()
    before = next((each.budget for each in scopes if each.of == of), None)
    now = {name: getattr(before, name, None) for name in ("tokens", "cost", "seconds")}
    now[words[2]] = int(amount) if words[2] == "tokens" else amount
    return BudgetChanged(of, **now, by=by)
