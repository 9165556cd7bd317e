"""The postprocessing function of a tool's owner, applied to output before anyone else sees it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from toolwire.catalogue.entry import Finalise
from toolwire.invocation.fold import failure_of_exception, result_of
from toolwire.invocation.owners_fault import owners_fault
from toolwire.invocation.ports.ports import Ports
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult


class FinaliseFailed(Exception):
    """The owner's function failed. `result` reports this, and holds no output of the tool."""

    def __init__(self, call: ToolCall, error: Exception) -> None:
        super().__init__(str(error))
        self.result = owners_fault(
            "internal",
            f"{call.name!r} ran, but postprocessing its result failed: {failure_of_exception(call, error).error}.",
            hint="It may have taken effect.",
            for_owner="see postprocess_func.",
            exception=error,
            call=call,
        )


async def finalise_response(response: ToolResponse, call: ToolCall, finalise: Finalise, ports: Ports) -> ToolResponse:
    """Returns the response as the owner wants it: a new response, or the same object, which the owner may have changed.

    Raises:
        FinaliseFailed: The owner's function raised, or returned something else.
    """
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
    try:
        instead: object = await ports.ask(partial(finalise, block), response)
        if instead is not None and not isinstance(instead, ToolResponse):
            raise TypeError(f"postprocess_func must return a ToolResponse or None, not {instead!r:.80}")
    except Exception as error:
        raise FinaliseFailed(call, error) from error
    return response if instead is None else instead


async def finalise_result(result: ToolResult, call: ToolCall, finalise: Finalise, ports: Ports) -> ToolResult:
    """Returns the result as its owner wants it. The owner gets the content before the failure too."""
    if result.failure is not None and not result.blocks:
        return result
    try:
        content = list(result.content if result.failure is None else result.blocks)
        given = ToolResponse(content, dict(result.metadata) or None)
        before = result_of(call, given)
        found = await finalise_response(given, call, finalise, ports)
    except Unrepresentable:
        # The next step reports the problem.
        return result
    except FinaliseFailed as failed:
        return failed.result
    after = result_of(call, found)
    if result.failure is not None:
        return replace(result, blocks=after.blocks)
    is_same = (after.blocks, dict(after.metadata)) == (before.blocks, dict(before.metadata))
    return result if is_same else after
