"""Registries and toolkits whose tools are searched for."""

from __future__ import annotations

import pytest

from toolwire import ConfigurationError, RegistrationError, ToolRegistry


def send_email(to: str) -> str:
    """Sends an email."""
    return to


def read_email(number: int) -> str:
    """Reads an email."""
    return str(number)


def registry() -> ToolRegistry:
    made = ToolRegistry()
    made.register(send_email)
    made.register(read_email)
    return made


def test_the_search_comes_and_goes() -> None:
    tools = registry()
    tools.configure(tool_search=True)
    tools.configure(tool_search=["send_email"])
    assert tools.get_tool("search_tools").always == ("send_email",)
    assert list(tools.tool_library) == ["send_email", "read_email", "search_tools"]
    tools.configure(tool_search=False)
    tools.configure(tool_search=False)
    assert list(tools.tool_library) == ["send_email", "read_email"]


def test_a_tool_of_that_name_stays_the_owners() -> None:
    tools = registry()
    tools.register(send_email, name="search_tools", replace=True)
    with pytest.raises(RegistrationError, match="a tool named 'search_tools' is registered already"):
        tools.configure(tool_search=True)
    tools.configure(tool_search=False)
    assert tools.get_tool("search_tools") is send_email


def test_one_string_is_not_a_list_of_names() -> None:
    with pytest.raises(ConfigurationError, match=r"^tool_search='send' is one string: write tool_search=\['send'\]"):
        registry().configure(tool_search="send")


def test_a_tool_registered_later_is_found() -> None:
    tools = registry()
    tools.configure(tool_search=True)
    assert tools.invoke("search_tools", {"query": "archive"}).metadata["found"] == []
    tools.register(send_email, name="archive")
    assert tools.invoke("search_tools", {"query": "archive"}).metadata["found"] == ["archive"]


async def test_the_search_of_a_toolkit_finds_its_tools_alone() -> None:
    tools = registry()
    tools.configure(tool_search=["read_*"])
    toolkit = tools.create_agent_toolkit("reader", ["read_email", "search_tools"])
    result = await toolkit.execute_tool("search_tools", {"query": "email"})
    assert result.metadata["found"] == ["read_email"]
    assert toolkit.get_tool("search_tools").always == ("read_*",)
    assert tools.invoke("search_tools", {"query": "email"}).metadata["found"] == ["send_email", "read_email"]


def test_code_execution_lists_what_is_told_and_runs_all() -> None:
    tools = registry()
    tools.enable_code_execution()
    everything = tools.get_tool("code_execution").description
    tools.configure(tool_search=["read_email"])
    described = tools.get_tool("code_execution").description
    assert ("- send_email(" in everything, "- send_email(" in described) == (True, False)
    assert [name for name in ("read_email", "search_tools") if f"- {name}(" in described] == [
        "read_email",
        "search_tools",
    ]
    assert tools.invoke("code_execution", {"code": "print(send_email('Ann'))"}).text == "Ann\n"


def test_a_registry_remembers_nothing_that_was_found() -> None:
    tools = registry()
    tools.configure(tool_search=True)
    tools.invoke("search_tools", {"query": "email"})
    assert tools.get_tool("search_tools").found_names == ()
