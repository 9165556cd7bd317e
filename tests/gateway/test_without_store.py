"""A server without a store asks the person of the client whose call runs, and keeps nothing."""

from __future__ import annotations

import logging
from typing import Any

import mcp_types as types
import pytest

from mcp import Client
from toolwire import ApprovalRequest, Decision, ToolRegistry, ToolServer

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


class Till:
    """A registry with one tool that a person has to allow, and what it paid."""

    def __init__(self, **options: Any) -> None:
        self.registry, self.paid = ToolRegistry(**options), list[int]()

        @self.registry.register(permission="confirm")
        def pay(amount: int) -> str:
            self.paid.append(amount)
            return "paid"


async def call(registry: ToolRegistry, mode: Any, said: types.ElicitResult | None, **options: Any) -> tuple[str, int]:
    """Returns the text of one call, and the number of forms that the client was shown."""
    forms: list[Any] = []

    async def fill(_: Any, form: Any) -> Any:
        forms.append(form)
        return said

    filling = {} if said is None else {"elicitation_callback": fill}
    async with Client(ToolServer(registry, "till", **options).in_memory(), mode=mode, **filling) as client:
        found: Any = await client.call_tool("pay", {"amount": 5})
    return found.content[0].text, len(forms)


@ERAS
async def test_the_person_of_a_client_with_forms_decides(mode: str) -> None:
    till = Till()
    allowed = types.ElicitResult(action="accept", content={"decision": "once"})
    assert await call(till.registry, mode, allowed) == ("paid", 1)
    assert till.paid == [5]
    text, forms = await call(till.registry, mode, types.ElicitResult(action="decline"))
    assert ("the person declined" in text, forms, till.paid) == (True, 1, [5])
    text, forms = await call(till.registry, mode, types.ElicitResult(action="cancel"))
    assert ("no answer came" in text, forms, till.paid) == (True, 1, [5])


@ERAS
async def test_without_forms_the_call_does_not_run_and_the_log_says_why(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    till = Till()
    with caplog.at_level(logging.WARNING, "toolwire.gateway"):
        text, _ = await call(till.registry, mode, None)
    assert ("no answer came" in text, till.paid) == (True, [])
    assert "'pay' needs a person, and its MCP client shows no forms: give the server a store" in caplog.text


@ERAS
async def test_an_approver_of_the_registry_decides_in_place_of_the_client(mode: str) -> None:
    def deny(request: ApprovalRequest) -> Decision:
        return Decision(request_id=request.id, verdict="deny", reason="not today")

    till = Till(approver=deny)
    text, forms = await call(till.registry, mode, types.ElicitResult(action="accept", content={"decision": "once"}))
    assert ("not today" in text, forms, till.paid) == (True, 0, [])
