"""A client for the conformance suite of MCP: `python -m ... URL` calls each tool of the server once.

The suite starts it for each scenario, and judges the messages that it sends. A person who accepts the defaults answers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from toolwire import ApprovalRequest, Decision, MCPClient, ToolRegistry

ECHO, ECHOED = "json_schema_echo", "json_schema_2020_12_tool"
"""A tool of one scenario takes the schema of the other tool, as the client has it."""

VALUES: dict[str, Any] = {"integer": 5, "number": 5, "string": "text", "boolean": True, "array": [], "object": {}}


def value_of(schema: Mapping[str, Any]) -> Any:
    """Returns a value that fits a simple schema."""
    if "default" in schema:
        return schema["default"]
    return schema["enum"][0] if "enum" in schema else VALUES[schema.get("type", "string")]


def fields_of(schema: Mapping[str, Any], *, is_whole: bool) -> dict[str, Any]:
    """Returns values for the required fields, or for all that have a default or are required."""
    required, fields = schema.get("required", ()), schema.get("properties", {})
    return {
        name: value_of(field) for name, field in fields.items() if name in required or (is_whole and "default" in field)
    }


def accept(request: ApprovalRequest) -> Decision:
    """Answers a form with its defaults."""
    schema = request.answer_schema
    answer = fields_of(schema, is_whole=True) if schema.get("type") == "object" else True
    return Decision(verdict="answer", answer=answer)


def calls_of(values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Gives the calls that the scenario prescribes, or one call of each tool."""
    prescribed = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
    if prescribed is not None:
        yield from ((call["name"], call["arguments"]) for call in prescribed)
        return
    for name, value in values.items():
        if name == ECHO:
            yield name, {"schema": values[ECHOED].input_schema}
        else:
            yield name, fields_of(value.input_schema, is_whole=False)


def main(url: str) -> None:
    registry = ToolRegistry(approver=accept)
    with MCPClient.http("suite", url) as client:
        registry.register_mcp_client(client, permission="auto")
        values = {function.name: function.value for function in registry.tool_library.values()}
        for name, arguments in calls_of(values):
            result = registry.invoke(f"suite/{name}", arguments)
            print(name, result.success, result.text, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
