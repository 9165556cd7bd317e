"""A conformance kit for observers: they accept every record, from any thread, and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from toolwire.invocation.ports.ports import CallRecord, Part
from toolwire.invocation.scope import Observer
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.testing.checks import holds, run_checks
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.context import Progress
from toolwire.vocabulary.failures import FAILURE_RULES
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import digest

MakeObserver = Callable[[], Observer]
"""Creates the observer under test."""


def check_observer(make_observer: MakeObserver) -> None:
    """Runs every check of `OBSERVER_CHECKS`.

    Raises:
        PortFails: At least one check failed.
    """
    run_checks(OBSERVER_CHECKS, make_observer)


def _takes_every_end(make: MakeObserver) -> None:
    observer = make()
    for result in _results():
        try:
            observer.ended(_record(result))
        except Exception as error:
            how = "a success" if result.failure is None else f"the failure {result.failure.kind}"
            holds(False, f"{how} made it raise {error!r}")


def _changes_nothing(make: MakeObserver) -> None:
    record = _record(ToolResult(True, {"rows": [1, 2]}, metadata={"pages": [3]}))
    observer = make()
    before = digest([dict(record.call.arguments), record.result.data, dict(record.result.metadata)])
    observer.ended(record)
    after = digest([dict(record.call.arguments), record.result.data, dict(record.result.metadata)])
    holds(before == after, "it changed the call or the result that it was told of")


def _is_told_from_several_threads(make: MakeObserver) -> None:
    observer = make()
    with ThreadPoolExecutor(8) as pool:
        told = [pool.submit(observer.ended, _record(ToolResult(True, number))) for number in range(200)]
    errors = {repr(one.exception()) for one in told if one.exception() is not None}
    holds(not errors, f"told from several threads it raised {sorted(errors)}")


def _takes_all_that_comes_before(make: MakeObserver) -> None:
    call = ToolCall("search", {"query": ["otters", object()]}, id="r_1")
    request = ApprovalRequest(id="a_1", call_id="r_1", tool="search", arguments={"query": ["né\x00"]}, reasons=("why",))
    decision = Decision(verdict="deny", request_id="a_1", reason="不行")
    given = {"started": (call,), "asked": (request,), "decided": (request, decision), "parts": (call,)}
    observer = make()
    for name, values in given.items():
        method = getattr(observer, name, None)
        if method is None:
            continue
        try:
            listen = method(*values, "r_1")
            for part in _PARTS if name == "parts" else ():
                listen(part)
        except Exception as error:
            holds(False, f"its method {name!r} raised {error!r}")


_PARTS = (
    Part(pieces=("né\ud800",)),
    Part(progress=Progress(done=1, total=None, message="half")),
    Part(response=ToolResponse([TextBlock(type="text", text="all")], stream=True, is_last=False)),
)

OBSERVER_CHECKS: Mapping[str, Callable[[MakeObserver], None]] = {
    "takes every end": _takes_every_end,
    "takes all that comes before": _takes_all_that_comes_before,
    "changes nothing": _changes_nothing,
    "is told from several threads": _is_told_from_several_threads,
}
"""The checks by name, to run one by one; each raises `PortFails`."""


def _results() -> list[ToolResult]:
    failures = [ToolResult.failed(kind, "it did not work – 不行") for kind in FAILURE_RULES]
    return [ToolResult(True), ToolResult(True, object()), ToolResult(True, {"text": "né\x00\ud800"}), *failures]


def _record(result: ToolResult) -> CallRecord:
    call = ToolCall("search", {"query": ["otters"]}, id="r_1")
    # No entry: the record of an unknown tool has none.
    return CallRecord(call, None, result, "r_1", 1_700_000_000.0, 0.25)
