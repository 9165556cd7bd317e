"""Code mode: a client finds tools and calls them in programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from mcp import Client
from tests.gateway.conftest import ERAS
from toolwire import ConfigurationError, Rule, Store, Toolkit, ToolRegistry, ToolServer
from toolwire.definition.from_schema import from_schema

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


class Files:
    """Tools of two servers, and the calls that ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.registry = ToolRegistry()
        for server in ("fs", "git"):
            for verb, permission in (("read", "auto"), ("write", "confirm"), ("erase", "deny")):
                self._add(f"{server}/{verb}", permission)
        self.registry.register(from_schema("look", "Looks.", {"type": "object"}, function=lambda: IMAGE))

    def _add(self, name: str, permission: Any) -> None:
        def run(path: str) -> dict[str, str]:
            self.ran.append(f"{name} {path}")
            return {"path": path}

        tool = from_schema(name, f"The {name.partition('/')[2]} tool.", SCHEMA, function=run)
        self.registry.register(tool, permission=permission)

    def server(self, store: str | None = None, **limits: Any) -> ToolServer:
        return ToolServer(self.registry, "code", mode="code", store=store, **limits)


async def called(client: Client, name: str, **arguments: Any) -> tuple[str, bool]:
    result: Any = await client.call_tool(name, arguments)
    return "\n".join(getattr(block, "text", block.type) for block in result.content), result.is_error


async def test_only_the_tools_of_code_mode_are_listed_and_no_other_is_called_directly() -> None:
    files = Files()
    async with Client(files.server().in_memory()) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == ["search_tools", "describe_tools", "run_program", "read_result"]
        with pytest.raises(Exception, match="fs_read"):
            await client.call_tool("fs_read", {"path": "a"})
    assert files.ran == []


async def test_a_found_or_described_tool_is_a_python_function() -> None:
    async with Client(Files().server().in_memory()) as client:
        found, _ = await called(client, "search_tools", query="read a file", limit=2)
        described, _ = await called(client, "describe_tools", names=["fs/read", "git_write", "nope"])
    assert "def fs_read(path: str)" in found
    assert "def fs_read(path: str)" in described
    assert "def git_write(path: str)" in described
    assert described.endswith("There is no tool named 'nope': search for it.")


async def test_a_program_calls_tools_of_all_servers_and_returns_its_result() -> None:
    files = Files()
    async with Client(files.server().in_memory()) as client:
        code = "[one['path'] for one in (fs_read(path='a'), git.read(path='b'))]"
        assert await called(client, "run_program", code=code) == ('["a", "b"]', False)
        assert await called(client, "run_program", code="look()") == ("[image]\nimage", False)
        text, is_error = await called(client, "run_program", code="fs_erase(path='a')")
    assert is_error
    assert "may not be run" in text
    assert files.ran == ["fs/read a", "git/read b"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_person_decides_in_the_middle_of_a_program(tmp_path: Path, era: Any) -> None:
    files, asked = Files(), []

    async def person(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        (field,) = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={field: "once"})

    code = "fs_read(path='a')\nfs_write(path='b')\ngit_read(path='c')\n'done'"
    server = files.server(f"sqlite:///{tmp_path}/runs.db").in_memory()
    async with Client(server, mode=era, elicitation_callback=person) as client:
        assert await called(client, "run_program", code=code) == ("done", False)
    assert files.ran == ["fs/read a", "fs/write b", "git/read c"]
    assert len(asked) == 1


@pytest.mark.parametrize(("rules", "ran"), [([Rule(effect="auto", tool="fs/*")], ["fs/write a"]), ([], [])])
async def test_the_rules_of_the_served_tools_decide_on_the_calls_of_a_program(
    rules: list[Rule], ran: list[str]
) -> None:
    files = Files()
    files.registry.configure(rules=rules)
    async with Client(files.server().in_memory()) as client:
        await called(client, "run_program", code="fs_write(path='a')")
        await called(client, "run_program", code="git_write(path='a')")
        await called(client, "run_program", code="fs_erase(path='a')")
    assert files.ran == ran


async def test_a_long_result_of_a_program_is_read_on_to_its_end() -> None:
    code = "'\\n'.join(str(number) for number in range(20_000))"
    async with Client(Files().server(result_bytes=32_768).in_memory()) as client:
        result: Any = await client.call_tool("run_program", {"code": code})
        text, note = result.content[0].text.rsplit("\n", 1)
        found = re.search(r"of ([\d,]+) characters; call read_result with id='(\w+)' and offset=(\d+)", note)
        assert found is not None
        assert int(found[1].replace(",", "")) == len("\n".join(map(str, range(20_000))))
        offset = int(found[3])
        while True:
            page, _ = await called(client, "read_result", id=found[2], offset=offset)
            text, note = f"{text}\n{page}".rsplit("\n", 1)
            more = re.search(r"read on with offset=(\d+)", note)
            if more is None:
                break
            offset = int(more[1])
    assert {"0", "9999", "19999"} <= set(text.split("\n"))


async def test_a_call_of_a_program_is_on_record(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with Client(Files().server(url).in_memory()) as client:
        await called(client, "run_program", code="fs_read(path='a')")
    with Store.open(url) as store:
        (run,) = store.runs()
        assert {call.tool for call in store.calls(run.run_id)} == {"run_program", "code_execution", "fs/read"}


def test_an_unknown_mode_says_what_to_write() -> None:
    mode: Any = "programs"
    with pytest.raises(ConfigurationError, match="write 'tools', 'search' or 'code'"):
        ToolServer([], "code", mode=mode)


def test_a_toolkit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs a ToolRegistry or a list of tools"):
        ToolServer(Toolkit(), "code", mode="code")
