"""The allowance of one conversation: what all budgets that count for it still hold, and what its next request may use.

Rule: a budget is never passed. A request is made when its input, counted too high rather than too low, and its longest
reply fit into each of them; what other conversations have reserved counts as used, and is waited for where it is all
that is in the way. Else the reply is to be shorter, down to what is still of use, or the turn is suspended.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from supervisor.agent.amount import NOTHING, UNIT, Amount, TokenPrice
from supervisor.agent.ledger import Ledger, Reservation, SharedAmount, midnight_after
from supervisor.agent.spending import Spending
from supervisor.agent.turn import SuspendedTurn
from supervisor.config.config_keys import BudgetConfig
from supervisor.config.model_keys import Price
from supervisor.journal.facts import CallEnded, Fact, TurnSuspended

USEFUL: Final = 1024
"""Tokens below which a reply is not worth asking for, unless it is wanted no longer."""
_RAISE: Final = {
    "turn": "Raise it with /budget turn, or `turn` in [budgets]",
    "session": "Raise it with /budget session, or `session` in [budgets]",
    "batch": "Raise it with --budget-tokens or --budget-cost and --resume, or `batch` in [budgets]",
    "day": "Raise `day` in [budgets]",
}


class BudgetScope(NamedTuple):
    """One budget that counts."""

    of: str
    """"turn", "session", "batch" or "day"."""
    budget: BudgetConfig
    used: Amount
    promised: Amount = NOTHING
    """What of that other requests, which run, have reserved."""


class Granted(NamedTuple):
    """How long a reply may be, in tokens, negative where not even the input fits; and the budget that holds least."""

    output: int
    scope: BudgetScope | None = None


@dataclass
class Allowance:
    """What one conversation may use.

    Args:
        ledger: has what is shared.
        spending: has the session's own.
        run: of the batch that it is for; "" for none.
        session: its id, by which the journal's facts are its own.
    """

    ledger: Ledger
    spending: Spending
    run: str = ""
    session: str = ""

    def scopes(self) -> list[BudgetScope]:
        self.ledger.read_others()
        config, changed, spending = self.ledger.config, self.spending.changed, self.spending
        found = []
        for of, budget, used in (
            ("turn", changed.get("turn", config.turn), spending.turn),
            ("session", changed.get("session", config.session), spending.session),
        ):
            if budget is not None:
                found.append(BudgetScope(of, budget, used))
        batch = self.ledger.batch_budget(self.run)
        for of, budget, read in (("batch", batch, self._batch), ("day", config.day, self.ledger.today)):
            if budget is not None:
                found.append(BudgetScope(of, budget, *read().with_others()))
        return found

    def _batch(self) -> SharedAmount:
        return self.ledger.batch(self.run)

    def count(self, fact: Fact) -> None:
        """Count the time of a call that has just ended for the budgets that are shared."""
        if isinstance(fact, CallEnded):
            self.ledger.add(Amount(ms=round(fact.seconds * 1000)), self.run)

    def holds(self, tokens: int, price: Price | None) -> bool:
        """Say whether there is room for a request of so many tokens of input, and a useful reply."""
        scopes = self.scopes()
        if price is None and any(scope.budget.cost is not None for scope in scopes):
            return False
        per_token = TokenPrice.of(price) if price is not None else TokenPrice(0, 0)
        return granted(scopes, tokens, USEFUL, per_token).output >= USEFUL

    async def reserve(
        self, turn: int, model: str, price: Price | None, tokens: int, most: int
    ) -> tuple[Reservation, int]:
        """Reserve what a request takes; return how long its reply may be, in tokens.

        Args:
            turn: that it is made in.
            model: that is asked.
            price: of its tokens; None where it is not known.
            tokens: of its input, at most.
            most: the longest reply that is wanted.

        Raises:
            SuspendedTurn: a budget holds no further request.
        """
        per_token = self._price(turn, model, price)
        while True:
            scopes = self.scopes()
            now = granted(scopes, tokens, most, per_token)
            if now.output >= most:
                break
            settled = [scope._replace(used=scope.used.minus(scope.promised)) for scope in scopes]
            if granted(settled, tokens, most, per_token).output > now.output:
                await self.ledger.until_settled()
                continue
            if now.output >= min(USEFUL, most):
                break
            raise SuspendedTurn(self._suspended(turn, now, tokens))
        output = min(now.output, most)
        amount = Amount(tokens + output, tokens * per_token.input + output * per_token.output)
        return self.ledger.take(amount, self.run), output

    def reserve_again(self, turn: int, before: Reservation) -> Reservation:
        """Reserve the same once more, for a request that is made again after one that is billed.

        Raises:
            SuspendedTurn: a budget does not hold it.
        """
        for scope in self.scopes():
            left = _left(scope)
            if any(have is not None and have < want for have, want in zip(left, _parts(before.amount), strict=True)):
                raise SuspendedTurn(self._suspended(turn, Granted(-1, scope), before.amount.tokens))
        return self.ledger.take(before.amount, self.run)

    def stands(self) -> bool:
        """Say whether what was just recorded as reserved fits behind what other processes had recorded before it."""
        budget = self.ledger.config.day
        if budget is None:
            return True
        used = self.ledger.today().used.plus(self.ledger.read_others(self.session))
        return all(each is None or each >= 0 for each in _left(BudgetScope("day", budget, used)))

    def _price(self, turn: int, model: str, price: Price | None) -> TokenPrice:
        if price is not None:
            return TokenPrice.of(price)
        scope = next((each for each in self.scopes() if each.budget.cost is not None), None)
        if scope is None:
            return TokenPrice(0, 0)
        why = (
            f"No price of the model {model} is known in {self.ledger.config.currency}, so that nobody can say what the "
            f"budget of the {scope.of} still holds. Set [prices.{model!r}] in config.toml, or choose another model."
        )
        raise SuspendedTurn(TurnSuspended(turn, "budget", why))

    def _suspended(self, turn: int, now: Granted, tokens: int) -> TurnSuspended:
        """Return why there is no room for a request with so much input."""
        assert now.scope is not None
        until = midnight_after(self.ledger.clock()) if now.scope.of == "day" else 0.0
        used = told(now.scope, self.ledger.config.currency)
        why = (
            f"The budget of the {now.scope.of} holds no further request, which takes up to {tokens} tokens and a "
            f"reply: {used}. {_RAISE[now.scope.of]}."
        )
        return TurnSuspended(turn, "budget", why, until, tokens)


def granted(scopes: list[BudgetScope], tokens: int, most: int, price: TokenPrice) -> Granted:
    """Return how long a reply may be, up to `most`, after an input of so many tokens."""
    found = Granted(most)
    for scope in scopes:
        for output in _outputs(scope, tokens, most, price):
            if output < found.output:
                found = Granted(output, scope)
    return found


def _outputs(scope: BudgetScope, tokens: int, most: int, price: TokenPrice) -> Iterator[int]:
    left, money, ms = _left(scope)
    if left is not None:
        yield left - tokens
    if money is not None:
        rest = money - tokens * price.input
        yield (most if rest >= 0 else -1) if price.output == 0 else rest // price.output
    if ms is not None and ms <= 0:
        yield -1


def _left(scope: BudgetScope) -> tuple[int | None, int | None, int | None]:
    """Return the tokens, the money and the milliseconds that a budget still holds; None where they are not limited."""
    budget, used = scope.budget, scope.used
    return (
        None if budget.tokens is None else budget.tokens - used.tokens,
        None if budget.cost is None else int(budget.cost * UNIT) - used.cost,
        None if budget.seconds is None else int(budget.seconds * 1000) - used.ms,
    )


def _parts(amount: Amount) -> tuple[int, int, int]:
    return amount.tokens, amount.cost, amount.ms


def told(scope: BudgetScope, currency: str) -> str:
    """Return what was used of a budget, in words."""
    budget, used = scope.budget, scope.used
    parts = [
        f"{used.tokens:,} of {budget.tokens:,} tokens" if budget.tokens is not None else "",
        f"{used.cost / UNIT:.4f} of {budget.cost:.4f} {currency}" if budget.cost is not None else "",
        f"{used.ms / 1000:.0f} of {budget.seconds:.0f} s" if budget.seconds is not None else "",
    ]
    return ", ".join(filter(None, parts)) or "not limited"
