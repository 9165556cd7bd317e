"""A handshake server's question reaches a client of 2026-07-28: its call is held, and goes on with the next request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.gateway.test_heard_calls import RULES, asking_client
from tests.patience import PATIENCE_S
from toolwire import ToolRegistry, ToolServer
from toolwire.gateway import held_calls

ACCEPTED = '{"action": "accept", "content": {"size": 3}}'
ANSWER = types.ElicitResult(action="accept", content={"size": 3})


async def person(context: Any, params: Any) -> types.ElicitResult:
    return ANSWER


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[[], ToolServer]]:
    """Makes gateways in front of one handshake server that asks, each as a process with the same store would be."""
    registry = ToolRegistry(rules=RULES)
    registry.register_mcp_client(asking_client(tmp_path / "record"))
    yield lambda: ToolServer(registry, "gateway", store=f"sqlite:///{tmp_path}/runs.db")
    registry.close()


def text_of(result: Any) -> str:
    return result.content[0].text


async def asked(client: Client, **arguments: Any) -> types.InputRequiredResult:
    """Calls, and returns the question in place of a result."""
    question = await client.session.call_tool("w_ask", arguments, allow_input_required=True)
    assert isinstance(question, types.InputRequiredResult), question
    return question


async def test_the_question_is_a_form_and_the_same_call_goes_on(new_server: Callable[[], ToolServer]) -> None:
    async with Client(new_server().in_memory(), elicitation_callback=person) as client:
        question = await asked(client)
        (key,) = question.input_requests or {}
        form: Any = (question.input_requests or {})[key]
        assert form.params.message == "The MCP server 'w' asks:\nHow much?"
        result = await client.session.call_tool(
            "w_ask", {}, input_responses={key: ANSWER}, request_state=question.request_state
        )
        assert text_of(result) == ACCEPTED
        # The SDK's client does both by itself.
        assert text_of(await client.call_tool("w_ask", {})) == ACCEPTED


async def test_a_call_is_held_as_often_as_its_server_asks(new_server: Callable[[], ToolServer], tmp_path: Path) -> None:
    async with Client(new_server().in_memory(), elicitation_callback=person) as client:
        assert text_of(await client.call_tool("w_ask", {"times": 3})) == " ".join([ACCEPTED] * 3)
    assert (tmp_path / "record").read_text().count("call ask") == 1


async def test_an_answer_after_the_process_has_ended_says_so(new_server: Callable[[], ToolServer]) -> None:
    async with Client(new_server().in_memory(), elicitation_callback=person) as client:
        question = await asked(client)
    async with Client(new_server().in_memory(), elicitation_callback=person) as client:
        answers: types.InputResponses = dict.fromkeys(question.input_requests or {}, ANSWER)
        late = await client.session.call_tool(
            "w_ask", {}, input_responses=answers, request_state=question.request_state
        )
    assert isinstance(late, types.CallToolResult)
    assert (late.is_error, (late.meta or {})["toolwire/failure"]["kind"]) == (True, "unknown_outcome")
    assert text_of(late).startswith("No call waits for this answer here: ")


async def test_an_answer_that_does_not_come_in_time_is_a_cancelled_form(
    new_server: Callable[[], ToolServer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(held_calls, "HELD_S", 0.05)
    async with Client(new_server().in_memory(), elicitation_callback=person) as client:
        await asked(client)
        record = tmp_path / "record"
        with anyio.fail_after(PATIENCE_S):
            while "cancel" not in record.read_text():  # noqa: ASYNC110 - another process writes it
                await anyio.sleep(0.01)


async def test_a_state_is_bound_to_its_call(new_server: Callable[[], ToolServer]) -> None:
    async with Client(new_server().in_memory(), elicitation_callback=person) as client:
        question = await asked(client)
        answers: types.InputResponses = dict.fromkeys(question.input_requests or {}, ANSWER)
        with pytest.raises(MCPError) as error:
            await client.session.call_tool(
                "w_ask", {"form": {}}, input_responses=answers, request_state=question.request_state
            )
    assert error.value.code == types.INVALID_PARAMS


async def test_a_client_without_forms_is_not_asked(new_server: Callable[[], ToolServer]) -> None:
    async with Client(new_server().in_memory()) as client:
        assert text_of(await client.call_tool("w_ask", {})) == '{"action": "decline"}'
