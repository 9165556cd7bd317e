"""`search_tools`: finds tools for a model's need, and says how to call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolwire.definition.from_schema import from_schema
from toolwire.definition.naming import program_name
from toolwire.definition.renderings.stub import stub
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import SEARCH_TOOLS, Caller
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.machine.work_clock import WorkLimit
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

DESCRIPTION = (
    "Find tools by their purpose. More tools exist than you were shown: search before you say that something "
    "cannot be done. Returns the tools that fit, best first, each with its name, purpose and parameters. "
    "A found tool counts as listed: call it."
)

FOUND_DEFAULT = 5
"""Tools that one search gives by default: the right one is nearly always among them."""
FOUND_LIMIT = 10
"""The most tools that a model may ask for: if it needs more, it should search for something else."""
ANSWER_LIMIT_BYTES = 24_000
"""Bytes of stubs in one answer, three quarters of a result's limit; further tools show only their first line."""
SUMMARY_LIMIT = 200
"""Characters of the first line of a tool that is not shown whole."""
QUERY_LIMIT = 500
"""Characters of a query: a few sentences. Each of their words is looked up."""

Find = Callable[[str, int, Caller], Sequence[Tool]]
"""Returns the caller's tools that answer a query best, best first, at most as many as the limit, under local names."""


def search_tools_tool(find: Find) -> Tool:
    """Returns the tool as models see it."""

    def search_tools(query: str, limit: int, context: CallContext) -> ToolResult:
        try:
            found = find(query, limit, context.caller)
        except WorkLimit as error:
            return ToolResult.failed("limit", str(error), exception=error)
        return ToolResult(True, _tools_text(found) if found else _nothing(query), metadata={"found": _names(found)})

    return from_schema(
        name=SEARCH_TOOLS,
        description=DESCRIPTION,
        input_schema={
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "An action and its object, such as 'send an email' or 'delete a calendar event'",
                    "minLength": 1,
                    "maxLength": QUERY_LIMIT,
                },
                "limit": {
                    "type": "integer",
                    "description": "Maximum number of tools",
                    "minimum": 1,
                    "maximum": FOUND_LIMIT,
                    "default": FOUND_DEFAULT,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        function=search_tools,
        effects=["read"],
        idempotent="natural",
    )


def _names(tools: Sequence[Tool]) -> list[str]:
    return [tool.name for tool in tools]


def _tools_text(tools: Sequence[Tool]) -> str:
    count = count_of(len(tools), "tool", "tools, best first")
    parts, size = [f"{count}:"], 0
    for tool in tools:
        whole = stub_of(tool)
        size += len(whole.encode("utf-8", "replace"))
        parts.append(whole if size <= ANSWER_LIMIT_BYTES else _summary_line(tool))
    return "\n\n".join(parts)


def stub_of(tool: Tool) -> str:
    """Returns the stub, with the tool's name above it if programs write another name."""
    text = stub(tool).removesuffix("\n    pass")
    return text if program_name(tool.name) == tool.name else f"{tool.name}\n{text}"


def _summary_line(tool: Tool) -> str:
    """Returns the tool's name and summary, and how to read more of it."""
    summary = tool.description.strip().partition("\n")[0]
    return f"{tool.name}: {summary[:SUMMARY_LIMIT]}\n(Search for {tool.name!r} to see its parameters.)"


def _nothing(query: str) -> str:
    return (
        f"No tool fits {query!r}. Say it in other words: an action and its object, as 'send email' or "
        "'list files'. If that finds nothing either, there is no such tool."
    )
