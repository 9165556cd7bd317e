"""Reserved names, and names that look alike."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.mcp.convert import from_mcp
from toolwire.session.session import Session
from toolwire.vocabulary.calls import RESERVED_NAMES
from toolwire.vocabulary.errors import RegistrationError

NAMES = (*sorted(RESERVED_NAMES), "__builtins__", "__result__", "__class__", "search-tools", "read.result")


def own() -> str:
    """A tool of the owner's."""
    return "own"


def outside(name: str) -> ToolSpec:
    return ToolSpec.from_mcp({"name": name, "inputSchema": {"type": "object"}}, lambda: "stranger", permission="auto")


def entry_of(name: str) -> Entry:
    tool = from_mcp({"name": name, "inputSchema": {"type": "object"}})
    return Entry(name=name, tool=tool, handle=tool)


@pytest.mark.threat(73)
@pytest.mark.parametrize("name", NAMES)
def test_an_outside_tool_never_takes_a_reserved_name(name: str) -> None:
    registry, toolkit = ToolRegistry(), Toolkit()
    refusal = f"the name {name!r} is reserved, and no tool from outside may take it: register it under another name="
    for take in (
        lambda: registry.register(outside(name)),
        lambda: registry.register(outside(name), replace=True),
        lambda: registry.register(outside("free"), name=name),
        lambda: toolkit.add_tool(outside(name)),
        lambda: toolkit.register_tool_function(outside(name)),
        lambda: Session([outside(name)]),
    ):
        with pytest.raises(RegistrationError) as refused:
            take()
        assert str(refused.value) == refusal
    registry.register(outside(name), name="free")
    assert registry.invoke("free").data == "stranger"


@pytest.mark.threat(73)
@pytest.mark.parametrize("name", NAMES)
def test_the_owner_takes_a_reserved_name_only_on_purpose(name: str) -> None:
    registry = ToolRegistry()
    with pytest.raises(RegistrationError, match="with replace=True to put yours in its place"):
        registry.register(own, name=name)
    registry.register(own, name=name, replace=True)
    assert registry.invoke(name).data == "own"


@pytest.mark.threat(73)
def test_an_outside_tool_does_not_run_in_the_place_of_programs() -> None:
    registry = ToolRegistry()
    registry.enable_code_execution()
    there = registry.get_tool("code_execution")
    with pytest.raises(RegistrationError):
        registry.register(outside("code_execution"), replace=True)
    assert registry.get_tool("code_execution") is there


def test_toolwires_own_tools_take_their_names() -> None:
    registry = ToolRegistry()
    registry.enable_code_execution()
    registry.configure(tool_search=True)
    registry.configure(result_pages=True)
    registry.configure(background_calls=True)
    toolkit = registry.create_agent_toolkit("agent", list(registry.tool_library))
    toolkit.allow_group_switching()
    assert set(toolkit.tools) == RESERVED_NAMES


@pytest.mark.threat(22)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("read_file", "read-file2"[:-1]),
        ("read_file", "Read_File"),
        ("read_file", "readfile"),
        ("pay_invoice", "p\u0430y_invoice"),
        ("pay_invoice", "pay_inv\u03bfice"),
        ("pay_invoice", "pay_\u0456nvoice"),
        ("send", "\uff53end"),
        ("list_all", "1ist_all"),
        ("lookup", "l00kup"),
        ("resume", "r\u00e9sum\u00e9"),
    ],
)
def test_tools_whose_names_look_alike_are_warned_of(first: str, second: str, caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    registry.register(own, name=first)
    with caplog.at_level(logging.WARNING, "toolwire.registry"):
        try:
            registry.register(outside(second))
        except RegistrationError as refused:
            assert "programs would write" in str(refused)  # noqa: PT017  # louder than a warning
            return
    assert [record.getMessage() for record in caplog.records] == [
        (
            f"the tool {second!a} looks like {first!a}: a person or a model may take one for the other; give "
            "one of them another name="
        )
    ]


def test_servers_whose_names_look_alike_are_warned_of_once_for_all_their_tools(
    caplog: pytest.LogCaptureFixture,
) -> None:
    catalogue = Catalogue()
    for server in ("prod1", "prodl", "prodI"):
        for tool in ("read", "write", "Read"):
            catalogue.add_new(entry_of(f"{server}/{tool}"))
        catalogue.server_requests.add_new(entry_of(f"{server}/resources:read"))
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the tool 'prod1/Read' looks like 'prod1/read'",
        "the server 'prodl' looks like 'prod1'",
        "the server 'prodI' looks like 'prod1'",
    ]


def test_a_name_that_looks_like_a_reserved_one_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    ToolRegistry().register(outside("c\u043ede_execution"))
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        r"the tool 'c\u043ede_execution' looks like 'code_execution'"
    ]


def test_different_names_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    for name in ("read_file", "write_file", "read_files", "lesen", "\u8bfb\u6587\u4ef6", "\u5199\u6587\u4ef6", "run2"):
        registry.register(own, name=name)
    registry.register(own, name="read_file")
    assert caplog.records == []


def test_a_removed_tool_is_not_looked_alike(caplog: pytest.LogCaptureFixture) -> None:
    registry: Any = ToolRegistry()
    registry.enable_code_execution()
    registry.disable_code_execution()
    registry.enable_code_execution()
    assert caplog.records == []
