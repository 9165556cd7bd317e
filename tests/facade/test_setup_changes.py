"""Changes of a registry's rules and middleware while others change them too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

from toolwire import Rule, ToolRegistry
from toolwire.invocation.scope import Scope


def add(a: int) -> int:
    """Adds one."""
    return a + 1


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def test_rules_that_are_added_while_others_are_read_count_too() -> None:
    registry = ToolRegistry()
    registry.register(add)
    registry.register(pay)

    def rules() -> Iterator[Rule]:
        registry.configure(rules=[Rule(effect="deny", tool="pay")])
        yield Rule(effect="deny", tool="add")

    registry.configure(rules=rules())
    assert [registry.permission_of(name) for name in ("add", "pay")] == ["deny", "deny"]


def test_a_change_waits_for_the_one_before_it() -> None:
    parts = ToolRegistry()._parts
    rivals: list[threading.Thread] = []

    def limited(scope: Scope) -> Scope:
        rival = threading.Thread(target=parts.change, args=(lambda scope: replace(scope, run_id="r"),))
        rivals.append(rival)
        rival.start()
        # Without the lock the rival is done here, and the result below undoes it.
        rival.join(0.2)
        return replace(scope, result_limit_bytes=9)

    parts.change(limited)
    rivals[0].join()
    assert (parts.scope.result_limit_bytes, parts.scope.run_id) == (9, "r")
