"""A tool that is replaced while its approval waits: what was approved is gone, and neither function runs."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import ApprovalRequest, Decision, ToolRegistry, ToolSpec


def registry_of(paid: list[str], *, approve: Any) -> ToolRegistry:
    registry = ToolRegistry(approver=approve)
    registry.register(payer(paid, "old"), permission="confirm")
    return registry


def payer(paid: list[str], whose: str) -> ToolSpec:
    """A tool like the others, with a function of its own."""

    def pay(amount: int) -> str:
        """Pays."""
        paid.append(f"{whose} {amount}")
        return whose

    return ToolSpec.from_function(pay)


@pytest.mark.parametrize("verdict", ["approve", "edit"])
@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_tool_that_was_replaced_meanwhile_is_a_mismatch(verdict: Any, is_replaced: bool) -> None:
    paid: list[str] = []

    def approve(request: ApprovalRequest) -> Decision:
        if is_replaced and len(asked) == 0:
            registry.register(payer(paid, "new"), permission="confirm", replace=True)
        asked.append(request)
        return Decision(verdict=verdict, arguments={"amount": 4} if verdict == "edit" else None)

    asked: list[ApprovalRequest] = []
    registry = registry_of(paid, approve=approve)
    result = registry.invoke("pay", {"amount": 5})
    amount = 4 if verdict == "edit" else 5
    if not is_replaced:
        assert (result.data, paid) == ("old", [f"old {amount}"])
        return
    assert result.failure is not None
    assert (result.failure.kind, paid) == ("approval_mismatch", [])
    assert result.metadata["approval"]["request_id"] == asked[0].id
    # The next call is asked about anew, and runs the new one.
    assert registry.invoke("pay", {"amount": 5}).data == "new"
    assert (len(asked), paid) == (2, [f"new {amount}"])
