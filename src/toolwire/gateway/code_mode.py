"""Code mode: many tools behind three, which find tools, describe them and run programs that call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from toolwire.builtin.search_tools import FOUND_DEFAULT, FOUND_LIMIT, QUERY_LIMIT, stub_of
from toolwire.definition.from_function import from_function
from toolwire.definition.naming import program_name
from toolwire.definition.tool import Tool
from toolwire.facade.registry import ToolRegistry
from toolwire.permission.policy import Rule
from toolwire.vocabulary.calls import CODE_EXECUTION, SEARCH_TOOLS
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.results import ToolResult

RUN_PROGRAM = "run_program"
DESCRIBED_LIMIT = 20
"""The most tools that one call describes: about as many as a program calls."""

_SEARCH = (
    "Find tools by their purpose. Programs can call many tools that are not listed here: search before you say that "
    "something cannot be done. Returns the tools that fit, best first, as Python functions: "
    f"call them in {RUN_PROGRAM}."
)
_RUN = (
    f"Run a Python program that calls the tools which {SEARCH_TOOLS} finds, as plain functions with keyword arguments: "
    "result = fs_read(path='a.txt'). Make all calls that you can in one program. Only what it prints and its result "
    "(assigned to __result__, or its last expression) come back."
)


def code_mode(tools: ToolRegistry) -> ToolRegistry:
    """Returns a registry with `search_tools`, `describe_tools`, `run_program` and `read_result` for these tools.

    Each call of a program takes the path of these tools: it is validated, judged, run and recorded. `search_tools` and
    `code_execution` are enabled in `tools`.
    """
    tools.configure(tool_search=True)
    tools.enable_code_execution()

    async def search_tools(
        query: Annotated[str, Field(min_length=1, max_length=QUERY_LIMIT, description="An action and its object")],
        context: CallContext,
        limit: Annotated[int, Field(ge=1, le=FOUND_LIMIT, description="Maximum number of tools")] = FOUND_DEFAULT,
    ) -> ToolResult:
        return await context.using(tools).call(SEARCH_TOOLS, query=query, limit=limit)

    def describe_tools(
        names: Annotated[list[str], Field(min_length=1, max_length=DESCRIBED_LIMIT, description="Names of tools")],
        context: CallContext,
    ) -> ToolResult:
        # Models write a name as it is, or as programs write it.
        seen = {program_name(entry.name): entry.tool_view for entry in context.using(tools).scope.tools}
        return ToolResult(True, "\n\n".join(_tool_stub(name, seen) for name in names))

    async def run_program(
        code: Annotated[str, Field(description="The Python source text")], context: CallContext
    ) -> ToolResult:
        return await context.using(tools).call(CODE_EXECUTION, code=code)

    # The policy of the served tools alone decides on their calls: this rule leaves all of them to it.
    front = ToolRegistry(rules=[Rule(effect="auto", tool="*")])
    for function, description in (
        (search_tools, _SEARCH),
        (describe_tools, "Describe tools whose names are known, as Python functions with their parameters."),
        (run_program, _RUN),
    ):
        # What it does beside its calls has no effect, and its calls are on record.
        tool = from_function(function, description=description, idempotent="natural")
        front.register(tool, replace=True)
    front.configure(result_pages=True)
    return front


def _tool_stub(name: str, tools: Mapping[str, Tool]) -> str:
    try:
        tool = tools.get(program_name(name))
    except DefinitionError:
        tool = None
    return f"There is no tool named {name!r}: search for it." if tool is None else stub_of(tool)
