"""Lets clients of others use `toolwire serve`: `python -m tests.real.clients_in_front FOLDER`.

`FOLDER` has the packages that `make mcp-servers` installs. Each client lists the tools, calls one, hears progress, and
makes a call that needs a person. The exit code is 1 if one sees something else.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fastmcp import Client as FastMCPClient
from fastmcp.client.transports import StdioTransport

from tests.gateway.test_config import said_until_served, serve_config
from tests.mcp.outside_clients import Node
from tests.patience import PATIENCE_S
from tests.real.calls import Era, Person, connect, form_value, make_call

HERE = Path(__file__).parent
TOOLS = {"add", "slow", "table", "pay"}
STEPS = 4
WRONG: list[str] = []


@dataclass(kw_only=True)
class Seen:
    """What a client saw."""

    tools: set[str] = field(default_factory=set[str])
    added: Any = None
    slow: str = ""
    steps: list[float] | None = field(default_factory=list[float])
    """None: this client does not show progress."""

    asked: str = ""
    """The text of the call that asks the person."""

    forms: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """A running `toolwire serve`."""

    url: str
    store: str

    @property
    def stdio(self) -> list[str]:
        """The command that serves the same tools, with the same store, to the client that starts it."""
        return serve_tools(self.store)

    def approve(self, text: str) -> None:
        """Decides as the text of a call says: by the command in it."""
        found = re.search(r"`toolwire (approvals approve \S+)`", text)
        assert found is not None, text
        command = [sys.executable, "-m", "toolwire", *found[1].split(), "--store", self.store]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)


def serve_tools(store: str) -> list[str]:
    return [sys.executable, "-m", "toolwire", "serve", "--tools", str(HERE / "tools_to_try.py"), "--store", store]


@contextmanager
def gateway(place: Path) -> Generator[Gateway]:
    store = f"sqlite:///{place / 'runs.db'}"
    process = serve_config("--tools", str(HERE / "tools_to_try.py"), "--store", store, cwd=place)
    try:
        *_, served = said_until_served(process)
        yield Gateway(url=served.split(" at ")[1].strip(), store=store)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


async def by_sdk(url: str, era: Era) -> Seen:
    person = Person()
    async with connect(url, era, elicitation_callback=person.answer) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        added = await make_call(client, "add", {"a": 19, "b": 23})
        slow = await make_call(client, "slow", {"steps": STEPS})
        asked = await make_call(client, "table", {"day": "Monday"})
    return Seen(
        tools=tools,
        added=added.structured,
        slow=slow.content[0]["text"],
        steps=[step for step, *_ in slow.progress],
        asked=asked.content[0]["text"],
        forms=person.messages,
    )


async def by_fastmcp(url: str) -> Seen:
    seen = Seen(steps=(steps := []))

    async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
        seen.forms.append(message)
        return {name: form_value(one) for name, one in params.requested_schema["properties"].items()}

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with FastMCPClient(url, elicitation_handler=answer, progress_handler=hear) as client:
        seen.tools = {tool.name for tool in await client.list_tools()}
        seen.added = (await client.call_tool("add", {"a": 19, "b": 23})).structured_content
        seen.slow = text_of((await client.call_tool("slow", {"steps": STEPS})).content)
        seen.asked = text_of((await client.call_tool("table", {"day": "Monday"})).content)
    return seen


def text_of(content: Any) -> str:
    return content[0]["text"] if isinstance(content[0], dict) else content[0].text


def by_typescript(node: Node, modules: Path, era: Era, url: str) -> Seen:
    said = node.run(str(HERE / "typescript_client.mjs"), str(modules), url, era)
    assert said.startswith("{"), said
    seen = json.loads(said)
    return Seen(
        tools=set(seen["tools"]),
        added=seen["added"]["structuredContent"],
        slow=text_of(seen["slow"]["content"]),
        steps=seen["steps"],
        asked=text_of(seen["asked"]["content"]),
        forms=seen["forms"],
    )


def by_inspector(node: Node, url: str) -> Seen:
    """The inspector's command line shows neither forms nor progress."""
    call = (url, "--transport", "http", "--method", "tools/call", "--tool-name")
    listed: Any = node.inspected(url, "--transport", "http", "--method", "tools/list")
    added: Any = node.inspected(*call, "add", "--tool-arg", "a=19", "b=23")
    slow: Any = node.inspected(*call, "slow", "--tool-arg", f"steps={STEPS}")
    return Seen(
        tools={tool["name"] for tool in listed["tools"]},
        added=added["structuredContent"],
        slow=text_of(slow["content"]),
        steps=None,
    )


def check(name: str, what: str, is_kept: bool, figure: object = "") -> None:
    print(f"{'ok  ' if is_kept else 'FAIL'} {name}: {what} {'' if is_kept else figure}".rstrip(), flush=True)
    if not is_kept:
        WRONG.append(f"{name}: {what}")


def check_seen(name: str, seen: Seen) -> None:
    check(name, "lists the tools", seen.tools >= TOOLS, seen.tools)
    check(name, "calls", seen.added == {"result": 42}, seen.added)
    check(name, "makes a long call", seen.slow == f"did {STEPS} steps", seen.slow)
    if seen.steps is not None:
        check(name, "hears each step", seen.steps == list(range(1, STEPS + 1)), seen.steps)
    if seen.forms:
        check(name, "shows a form", "How many guests on Monday?" in seen.forms[0], seen.forms)
        check(name, "sends the answer", re.fullmatch(r"a table for \d+", seen.asked) is not None, seen.asked)


def check_text(name: str, served: Gateway, amount: int, pay: Callable[[int], str]) -> None:
    """A client without forms reads the id and the command. After the decision, the same call runs once.

    Each call is in a session of its own. They belong together because one user starts the server over stdio; over HTTP
    a client needs a token for that.
    """
    waits = pay(amount)
    check(name, "reads the id and the command", "toolwire approvals approve a_" in waits, waits)
    served.approve(waits)
    check(name, "makes the call after the decision", (paid := pay(amount)) == f"paid {amount}", paid)
    check(name, "a second equal call asks", "toolwire approvals approve a_" in (more := pay(amount)), more)


def pay_by_sdk(served: Gateway, era: Era, amount: int) -> str:
    async def call() -> str:
        async with connect(served.stdio, era) as client:
            return (await make_call(client, "pay", {"amount": amount})).content[0]["text"]

    return asyncio.run(call())


def pay_by_fastmcp(served: Gateway, amount: int) -> str:
    async def call() -> str:
        command, *arguments = served.stdio
        async with FastMCPClient(StdioTransport(command, arguments, keep_alive=False)) as client:
            return text_of((await client.call_tool("pay", {"amount": amount}, raise_on_error=False)).content)

    return asyncio.run(call())


def pay_by_inspector(node: Node, served: Gateway, amount: int) -> str:
    options = ("--method", "tools/call", "--tool-name", "pay", "--tool-arg", f"amount={amount}")
    paid: Any = node.inspected(*served.stdio, *options)
    return text_of(paid["content"])


def main(folder: Path) -> None:
    node, modules = Node(folder), folder.resolve() / "node_modules"
    with tempfile.TemporaryDirectory() as place, gateway(Path(place)) as served:
        url = served.url
        for era in ("auto", "legacy"):
            check_seen(f"SDK, {era}", asyncio.run(by_sdk(url, era)))
            check_seen(f"TypeScript SDK, {era}", by_typescript(node, modules, era, url))
        check_seen("FastMCP", asyncio.run(by_fastmcp(url)))
        check_seen("inspector", by_inspector(node, url))
        check_text("SDK, legacy, no forms", served, 1, partial(pay_by_sdk, served, "legacy"))
        check_text("SDK, auto, no forms", served, 2, partial(pay_by_sdk, served, "auto"))
        check_text("FastMCP, no forms", served, 3, partial(pay_by_fastmcp, served))
        check_text("inspector", served, 4, partial(pay_by_inspector, node, served))
    print(f"{len(WRONG)} promises broken")
    sys.exit(bool(WRONG))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
