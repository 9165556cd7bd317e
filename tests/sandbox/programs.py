"""Tools and shorthands for tests that run programs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tests.patience import PATIENCE_S
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Answer, AnswerError, Program, ProgramCall, ProgramParameter, ProgramTool
from toolwire.sandbox.report import ProgramResult


def parameter(name: str, kind: Any = "either", *, required: bool = True, program_name: str = "") -> ProgramParameter:
    return ProgramParameter(name=name, program_name=program_name or name, kind=kind, required=required)


ADD = ProgramTool(
    name="add", program_name="add", parameters=(parameter("a"), parameter("b")), signature="add(a: int, b: int)"
)
SEARCH = ProgramTool(
    name="search",
    program_name="search",
    parameters=(parameter("query"), parameter("limit", required=False)),
    raises=("RateLimited",),
    signature="search(query: str, limit: int = 10)",
)
ECHO = ProgramTool(name="echo", program_name="echo", parameters=(parameter("value"),), signature="echo(value)")
FAIL = ProgramTool(
    name="fail",
    program_name="fail",
    parameters=(parameter("type_name"), parameter("message"), parameter("family", required=False)),
)
MANY = ProgramTool(
    name="many-kinds",
    program_name="many_kinds",
    parameters=(
        parameter("first", "positional_only"),
        parameter("class", program_name="class_"),
        parameter("rest", "var_positional"),
        parameter("flag", "keyword_only"),
        parameter("mode", "keyword_only", required=False),
        parameter("more", "var_keyword"),
    ),
)
TOOLS = (ADD, SEARCH, ECHO, FAIL, MANY)


class FakeTools:
    """Answers calls, and remembers them."""

    def __init__(self, **functions: Callable[[ProgramCall], Answer]) -> None:
        self.calls: list[ProgramCall] = []
        self._functions: Mapping[str, Callable[[ProgramCall], Answer]] = functions

    def __call__(self, call: ProgramCall) -> Answer:
        self.calls.append(call)
        own = self._functions.get(call.tool)
        return own(call) if own is not None else answer(call)

    async def awaited(self, call: ProgramCall) -> Answer:
        return self(call)


def answer(call: ProgramCall) -> Answer:
    given = call.arguments
    match call.tool:
        case "add":
            return Answer(value=given["a"] + given["b"])
        case "search":
            rows = [{"title": given["query"], "rank": rank} for rank in range(given.get("limit", 2))]
            return Answer(value=rows)
        case "fail":
            family = given.get("family", "tool")
            return Answer(error=AnswerError(type_name=given["type_name"], message=given["message"], family=family))
        case "many-kinds":
            return Answer(value=given)
        case _:
            return Answer(value=given["value"])


class Meeting:
    """A tool that answers only when a number of calls wait at the same time."""

    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties)
        self._parties = parties
        self._here = 0
        self._all_here = asyncio.Event()

    def __call__(self, call: ProgramCall) -> Answer:
        self._barrier.wait(PATIENCE_S)
        return Answer(value=call.arguments["value"])

    async def awaited(self, call: ProgramCall) -> Answer:
        self._here += 1
        if self._here == self._parties:
            self._all_here.set()
        await asyncio.wait_for(self._all_here.wait(), PATIENCE_S)
        return Answer(value=call.arguments["value"])


class Runner:
    """Runs sources in one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def __call__(
        self,
        source: str,
        tools: Callable[[ProgramCall], Answer] | None = None,
        *,
        source_checks: bool = True,
        **limits: Any,
    ) -> ProgramResult:
        program = Program(source=source, tools=TOOLS, limits=Limits(**limits), source_checks=source_checks)
        return self.sandbox.run(program, tools or answer)
