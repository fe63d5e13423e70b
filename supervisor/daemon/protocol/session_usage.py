"""Tokens and money that a session has used, as its clients are told. Pure."""

from collections.abc import Callable

from supervisor.acp import extensions, schema
from supervisor.agent.models.model_cost import COUNTED, cost
from supervisor.agent.models.model_facts import ModelFacts


class SessionUsage:
    """What was used so far; `facts_of` says what holds of a model, by its name."""

    def __init__(self, facts_of: Callable[[str], ModelFacts]) -> None:
        self.cost = 0.0
        """Money spent, in the currency of the last price."""
        self.context = 0
        """Tokens in the model's context, as of its last reply."""
        self.budgets: Callable[[], list[extensions.BudgetUse]] = list
        """What was used of the session's budgets."""
        self._facts_of = facts_of
        self._currency = ""
        self._tokens: dict[str, int] = {}

    def begin_turn(self) -> None:
        self._tokens = {}

    def count(self, model: str, usage: dict[str, int]) -> None:
        """Take what a reply of a model has counted into account."""
        used = sum(usage.get(name, 0) for name in COUNTED)
        if not used:
            return
        self.context = used
        for name in COUNTED:
            self._tokens[name] = self._tokens.get(name, 0) + usage.get(name, 0)
        if (price := self._facts_of(model).prices) is not None:
            self._currency = price.currency
            self.cost += cost(price, usage)

    @property
    def of_turn(self) -> schema.TokenUsage | None:
        """The tokens of the last turn; None where the model counts none."""
        if not self._tokens:
            return None
        return schema.TokenUsage(sum(self._tokens.values()), *(self._tokens[name] for name in COUNTED))

    def updates(self, model: str) -> list[schema.Update]:
        """Return the tokens in the context and the cost so far; nothing where no reply has counted any."""
        if not self.context:
            return []
        facts = self._facts_of(model)
        currency = facts.prices.currency if facts.prices is not None else self._currency
        spent = schema.Cost(amount=round(self.cost, 6), currency=currency) if currency else None
        budgets = self.budgets()
        meta = {extensions.BUDGETS: budgets} if budgets else None
        return [schema.UsageUpdate(used=self.context, size=facts.window, cost=spent, meta=meta)]
