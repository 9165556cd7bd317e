"""The guard of the raw file tools: the environment decides, and no way of calling goes around it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from toolwire import CallContext, Caller, MCPClient, Rule, Session, Toolkit, ToolRegistry, ToolResult, ToolServer
from toolwire.facade.built_in.raw_files import GUARD_VARIABLES, guard_of_now
from toolwire.tools import (
    DiskFileSystem,
    FileDomainService,
    insert_text_file,
    view_text_file,
    workspace_tools,
    write_text_file,
)

SECRET = "the secret of the host"
VALUES = (None, "allow", "warn", "deny", "dney", "ALLOW", "")
STRICTNESS = ("allow", "warn", "deny")

Way = Callable[[str], ToolResult]
"""Calls `view_text_file` with a path."""


def expected(values: tuple[str | None, str | None]) -> str:
    known = ["deny" if value not in STRICTNESS else value for value in values if value is not None]
    return max(known, key=STRICTNESS.index, default="warn")


def set_guard(monkeypatch: pytest.MonkeyPatch, *values: str | None) -> None:
    for name, value in zip(GUARD_VARIABLES, values, strict=False):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "secret").write_text(SECRET)
    return str(tmp_path / "secret")


def registry() -> ToolRegistry:
    """A registry in which everything short of the guard lets the tool run."""
    made = ToolRegistry(rules=[Rule(effect="auto", tool="*")])
    made.register(view_text_file, permission="auto")
    return made


def by_owner(path: str) -> ToolResult:
    return asyncio.run(view_text_file(path))


def by_owner_validated(path: str) -> ToolResult:
    return view_text_file.run({"file_path": path})


def by_registry(path: str) -> ToolResult:
    return registry().invoke("view_text_file", {"file_path": path})


def by_toolkit(path: str) -> ToolResult:
    toolkit = registry().create_agent_toolkit("reader", ["view_text_file"])
    return asyncio.run(toolkit.execute_tool("view_text_file", {"file_path": path}))


def by_session(path: str) -> ToolResult:
    session = Session(registry(), protocol="xml", permissions={"view_text_file": "auto"})
    call = f"<tool_call><name>view_text_file</name><params><file_path>{path}</file_path></params></tool_call>"
    return session.run_turn(call).results[0]


def by_program(path: str) -> ToolResult:
    ended = registry().run_program(f"print(view_text_file({path!r}))")
    return ToolResult(ended.error is None, f"{ended.stdout}{ended.error}")


def by_mcp(path: str) -> ToolResult:
    server = ToolServer(registry(), "files")
    made = ToolRegistry()
    with MCPClient.in_memory("own", server.in_memory()) as client:
        made.register_mcp_client(client, permission="auto")
        result = made.invoke("own/view_text_file", {"file_path": path})
    made.close()
    return result


def below_another(path: str) -> ToolResult:
    child = registry()

    async def work(context: CallContext) -> str:
        """Works as an agent below this one."""
        return (await context.using(child).call("view_text_file", file_path=path)).text

    parent = ToolRegistry()
    parent.register(work)
    return parent.invoke("work", {})


WAYS: list[Way] = [
    *(by_owner, by_owner_validated, by_registry, by_toolkit, by_session, by_program, by_mcp, below_another),
]
CALLED_PER_VALUES: list[Way] = [by_owner, by_registry]
"""The cheap ways. The other ways meet each guard, but not each pair of values."""


@pytest.mark.threat(38)
@pytest.mark.requirement("toolkit.danger.guard-variable")
@pytest.mark.parametrize("values", list(product(VALUES, VALUES)), ids=repr)
def test_the_stricter_variable_counts_and_an_unknown_value_denies(
    values: tuple[str | None, str | None], secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_guard(monkeypatch, *values)
    assert guard_of_now() == expected(values)
    read = [SECRET in way(secret).text for way in CALLED_PER_VALUES]
    assert read == [expected(values) != "deny"] * len(CALLED_PER_VALUES)


@pytest.mark.threat(38)
@pytest.mark.requirement("toolkit.danger.deny")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", [0, 1], ids=GUARD_VARIABLES)
def test_no_way_of_calling_goes_around_a_denial(
    way: Way, place: int, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_guard(monkeypatch, "allow", "allow")
    assert SECRET in way(secret).text  # the control: allowed, the same way reads the file
    for value in ("deny", "dney"):
        monkeypatch.setenv(GUARD_VARIABLES[place], value)
        assert SECRET not in way(secret).text


@pytest.mark.requirement("toolkit.danger.deny")
def test_a_denied_call_says_why_and_is_marked(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_guard(monkeypatch, "deny", None)
    for way in (by_owner, by_registry, by_toolkit, by_session):
        refused = way(secret)
        assert refused.error == (
            "'view_text_file' may not be run: the host has turned the raw file tools off (TOOLWIRE_DANGEROUS_TEXT_IO)."
        )
        assert refused.failure is not None
        assert (refused.failure.kind, refused.metadata["dangerous_io"]) == ("denied", True)


def told(made: ToolRegistry) -> list[bool]:
    """Returns whether each description for models names the tool."""
    session = Session(made, protocol="openai")
    texts = [
        Session(made, protocol="attp").system_prompt,
        Session(made, protocol="xml").system_prompt,
        repr(session.request_tools),
        repr(made.create_agent_toolkit("reader", ["view_text_file"]).get_json_schemas()),
        made.invoke("view_text", {}).text,
    ]
    with MCPClient.in_memory("own", ToolServer(made, "files").in_memory()) as client:
        theirs = ToolRegistry()
        theirs.register_mcp_client(client)
        texts.append(repr(list(theirs.to_toolspecs())))
        theirs.close()
    return ["view_text_file" in text for text in texts]


@pytest.mark.threat(38)
def test_a_denied_tool_is_absent_from_every_description(monkeypatch: pytest.MonkeyPatch) -> None:
    made = registry()
    made.register(echo)
    set_guard(monkeypatch, "warn", None)
    assert told(made) == [True] * 6
    assert made.permission_of("view_text_file") == "auto"
    set_guard(monkeypatch, "warn", "deny")
    assert told(made) == [False] * 6
    assert made.permission_of("view_text_file") == "deny"
    set_guard(monkeypatch, None, None)
    assert told(made) == [True] * 6


def echo(number: int) -> int:
    """Returns the number."""
    return number


def test_a_session_describes_the_tool_again_when_the_guard_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(registry(), protocol="openai")
    for value, count in (("warn", 1), ("deny", 0), ("allow", 1)):
        set_guard(monkeypatch, value, None)
        assert len(session.request_tools) == count


@pytest.mark.requirement("toolkit.danger.warn", "toolkit.danger.allow")
@pytest.mark.parametrize(("value", "level"), [(None, "WARNING"), ("warn", "WARNING"), ("allow", "INFO")])
def test_each_call_is_logged_and_its_result_marked(
    value: str | None, level: str, secret: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_guard(monkeypatch, value, None)
    caplog.set_level(logging.INFO, "toolwire.dangerous_io")
    done = by_registry(secret)
    assert (done.success, done.metadata["dangerous_io"]) == (True, True)
    assert done.call is not None
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        (level, f"view_text_file of {secret!r}: call {done.call.id}, caller {Caller()}")
    ]


@pytest.mark.requirement("toolkit.danger.allow")
async def test_a_toolkits_response_is_marked(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_guard(monkeypatch, "allow", None)
    toolkit = registry().create_agent_toolkit("reader", ["view_text_file"])
    call = {"type": "tool_use", "id": "1", "name": "view_text_file", "input": {"file_path": secret}}
    chunks = [chunk async for chunk in toolkit.call_tool_function(call)]
    assert chunks[-1].metadata is not None
    assert chunks[-1].metadata["dangerous_io"] is True


@pytest.mark.requirement("toolkit.files.not-default")
def test_no_toolkit_has_the_tools_unless_they_are_registered(tmp_path: Path) -> None:
    system = DiskFileSystem(tmp_path)
    service = FileDomainService(system.create_handle([{"prefix": "/workspace/", "ops": {"list", "write"}}]))
    offered = {tool.name for tool in workspace_tools(tmp_path)} | {tool.name for tool, _ in system.get_tools(service)}
    offered |= set(ToolRegistry().list_tools()) | set(Toolkit().tools) | set(Session([echo]).tools)
    assert offered.isdisjoint(tool.name for tool in (view_text_file, write_text_file, insert_text_file))


def test_every_raw_tool_is_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_guard(monkeypatch, "deny", None)
    path = tmp_path / "a"
    path.write_text("old\n")
    assert not asyncio.run(write_text_file(str(path), "new")).success
    assert not asyncio.run(insert_text_file(str(path), "new", 1)).success
    assert path.read_text() == "old\n"
