"""Connects clients of the SDK, and makes calls whose whole outcome can be compared."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from mcp import Client, StdioServerParameters

Era = Literal["auto", "legacy"]
Call = tuple[str, dict[str, Any]]

LIMIT_S = 60.0
"""Seconds after which a call counts as one that hangs."""

NOWHERE = Path(os.devnull).open("w")  # noqa: SIM115
"""What servers log is not of interest here."""

TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} [^\n\"]*|\d+:\d\d:\d\d [AP]M"
)
"""The times in texts: two connections see a file at two times."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A call as its client saw it, but for the metadata."""

    content: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    structured: Any = None
    is_error: bool = False
    progress: list[tuple[float, float | None, str | None]] = field(default_factory=list[Any])
    questions: list[str] = field(default_factory=list[str])
    """The fields for which the person was asked."""


@asynccontextmanager
async def connect(server: str | list[str], era: Era = "auto", **options: Any) -> AsyncGenerator[Client]:
    """Connects to a URL, or starts a command."""
    target: Any = server
    if not isinstance(server, str):
        parameters = StdioServerParameters(command=server[0], args=server[1:])
        target = stdio_client(parameters, errlog=NOWHERE)
    async with Client(target, mode=era, **options) as client:
        yield client


class Person:
    """Answers each form as a person would: with one text and one number."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.fields: list[str] = []

    async def answer(self, context: Any, params: Any) -> types.ElicitResult:
        properties = params.requested_schema["properties"]
        self.messages.append(params.message)
        self.fields += properties
        return types.ElicitResult(action="accept", content={name: form_value(one) for name, one in properties.items()})


def form_value(schema: dict[str, Any]) -> Any:
    """Returns a value for a field of a form: its default, its first choice, or one of its type."""
    if "default" in schema:
        return schema["default"]
    choices = schema.get("enum") or [each["const"] for each in schema.get("oneOf", ())]
    if choices:
        return choices[0]
    return {"integer": 4, "number": 4, "boolean": True, "array": []}.get(schema.get("type", ""), "Ann")


async def make_calls(client: Client, calls: Sequence[Call], person: Person) -> list[Outcome]:
    """Makes the calls one after the other."""
    outcomes: list[Outcome] = []
    for name, arguments in calls:
        person.fields.clear()
        with anyio.fail_after(LIMIT_S):
            outcome = await make_call(client, name, arguments)
        outcomes.append(Outcome(**{**vars(outcome), "questions": list(person.fields)}))
    return outcomes


async def make_call(client: Client, name: str, arguments: dict[str, Any]) -> Outcome:
    steps: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    try:
        result = await client.call_tool(name, arguments, progress_callback=hear)
    except MCPError as failure:
        return Outcome(content=[{"protocol error": failure.code}], is_error=True)
    # Neither the metadata nor the times belong to what a server says.
    content = [without_times(block.model_dump(mode="json", exclude={"meta"})) for block in result.content]
    structured = without_times(result.structured_content)
    return Outcome(content=content, structured=structured, is_error=bool(result.is_error), progress=steps)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_times(one) for one in value]
    return TIMES.sub("TIME", value) if isinstance(value, str) else value
