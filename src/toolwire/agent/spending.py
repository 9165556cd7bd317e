"""The use of a budget by the run of an agent."""

from __future__ import annotations

import time
from typing import cast

from toolwire.agent.result import Budget, Stop
from toolwire.models.model import Model, Price, Usage
from toolwire.vocabulary.errors import ConfigurationError

MILLION = 1_000_000


class Spending:
    """The use of one run. The use of a sub-agent counts for all agents above it."""

    def __init__(self, budget: Budget, above: Spending | None = None) -> None:
        self.budget, self.above = budget, above
        self.usage, self.turns, self.cost = Usage(), 0, 0.0
        self._until = None if budget.seconds is None else time.monotonic() + budget.seconds

    def add(self, usage: Usage, price: Price | None) -> None:
        """Adds the tokens of one request, here and above."""
        self.usage += usage
        if price is not None:
            self.cost += (usage.input * price.input + usage.output * price.output) / MILLION
        if self.above is not None:
            self.above.add(usage, price)

    def add_turn(self) -> None:
        """Adds one reply, here and above."""
        self.turns += 1
        if self.above is not None:
            self.above.add_turn()

    @property
    def remaining_s(self) -> float | None:
        """Seconds that are left, here and above; None without a limit."""
        own = None if self._until is None else max(0.0, self._until - time.monotonic())
        above = None if self.above is None else self.above.remaining_s
        return own if above is None else above if own is None else min(own, above)

    def stop_reason(self) -> Stop | None:
        """Returns the first limit that is reached, here or above; None if the run may go on."""
        budget, tokens = self.budget, self.usage.input + self.usage.output
        if budget.turns is not None and self.turns >= budget.turns:
            return "turns"
        if budget.tokens is not None and tokens >= budget.tokens:
            return "tokens"
        if budget.cost is not None and self.cost >= budget.cost:
            return "cost"
        if self.remaining_s == 0.0:
            return "seconds"
        return None if self.above is None else self.above.stop_reason()

    def check_price(self, name: str, model: Model) -> None:
        """Refuses a model without a price if a budget limits the cost.

        Raises:
            ConfigurationError: It has none.
        """
        price = cast("object", model.price)
        if price is not None and not isinstance(price, Price):
            raise ConfigurationError(f"agent {name!r}: its model has price={price!r:.40}: write Price(input=, output=)")
        if self.budget.cost is not None and model.price is None:
            raise ConfigurationError(
                f"agent {name!r}: Budget(cost=...) needs the price of its model: give the model price=Price(input=..., "
                "output=...), or leave cost out"
            )
        if self.above is not None:
            self.above.check_price(name, model)
