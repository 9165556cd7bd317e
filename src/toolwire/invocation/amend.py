"""What a tool's owner makes of what the tool gave, before anybody sees it."""

from __future__ import annotations

from functools import partial

from toolwire.catalogue.entry import Amend
from toolwire.invocation.fold import raised, replaced, result_of
from toolwire.invocation.owner import owners_fault
from toolwire.invocation.ports import Ports
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult


class AmendFailed(Exception):
    """The owner's function raised; `result` says so, and holds nothing of what the tool gave."""

    def __init__(self, call: ToolCall, error: Exception) -> None:
        super().__init__(str(error))
        self.result = owners_fault(
            "internal",
            f"{call.name!r} ran, but the postprocessing of what it gave failed: {raised(call, error).error}.",
            hint="It may have taken effect.",
            for_owner="see postprocess_func.",
            exception=error,
            call=call,
        )


async def amended(response: ToolResponse, call: ToolCall, amend: Amend, ports: Ports) -> ToolResponse:
    """What stands in for the response: another one, or itself, which the owner may have changed.

    Raises:
        AmendFailed: the owner's function raised, or gave something else.
    """
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
    try:
        instead: object = await ports.ask(partial(amend, block), response)
        if instead is not None and not isinstance(instead, ToolResponse):
            raise TypeError(f"postprocess_func gives a ToolResponse or None, not {instead!r:.80}")
    except Exception as error:
        raise AmendFailed(call, error) from error
    return response if instead is None else instead


async def amended_result(result: ToolResult, call: ToolCall, amend: Amend, ports: Ports) -> ToolResult:
    """The result as its owner wants it; of a failed one, what came before the failure."""
    if result.failure is not None and not result.blocks:
        return result
    try:
        content = list(result.content if result.failure is None else result.blocks)
        given = ToolResponse(content, dict(result.metadata) or None)
        before = result_of(call, given)
        found = await amended(given, call, amend, ports)
    except Unrepresentable:
        # The step that comes next says what is wrong with it.
        return result
    except AmendFailed as failed:
        return failed.result
    after = result_of(call, found)
    if result.failure is not None:
        return replaced(result, after.blocks)
    is_same = (after.blocks, dict(after.metadata)) == (before.blocks, dict(before.metadata))
    return result if is_same else after
