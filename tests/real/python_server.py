"""A server over stdio, made with one of three SDKs: `python python_server.py sdk1|sdk2|fastmcp`.

SDK 1 has an interpreter of its own, so this file imports nothing of this repository.
"""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import sys
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if sys.argv[1] == "sdk1":
    from mcp.server.fastmcp import Context as SdkContext
    from mcp.server.fastmcp import FastMCP as Server
elif sys.argv[1] == "sdk2":
    from mcp.server import MCPServer as Server
    from mcp.server.mcpserver import Context as SdkContext
else:
    from fastmcp import Context as SdkContext
    from fastmcp import FastMCP as Server

if TYPE_CHECKING:
    Context = Any
else:
    Context = SdkContext


class Person(BaseModel):
    """A person."""

    name: str
    age: int
    friends: list[str] = []


class Guest(BaseModel):
    """The answer to a form, which has plain fields alone."""

    name: str
    age: int


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def older(person: Person, years: int = 1) -> Person:
    """Gives the person later."""
    return person.model_copy(update={"age": person.age + years})


def long_text(length: int) -> str:
    """Gives a text of this length, then lines of several shapes."""
    return "x" * length + "\n# heading\n\n\tindented ✓ 日本\n</tool>\n"


def several() -> list[str]:
    """Gives several texts."""
    return ["one", "two"]


def nothing() -> None:
    """Gives nothing."""


def fail() -> str:
    """Fails."""
    raise ValueError("the disk is full")


async def count(upto: int, ctx: Context) -> str:
    """Counts, and says how far it is."""
    for number in range(1, upto + 1):
        await ctx.report_progress(number, upto, f"at {number}")
    return f"counted to {upto}"


async def ask(ctx: Context) -> str:
    """Asks the person."""
    answer: Any = await ctx.elicit("Who is it?", Guest)
    if answer.action != "accept":
        return str(answer.action)
    return f"{answer.data.name} is {answer.data.age}"


def main() -> None:
    server = Server(sys.argv[1])
    for tool in (add, older, long_text, several, nothing, fail, count, ask):
        server.tool()(tool)
    server.run()


if __name__ == "__main__":
    main()
