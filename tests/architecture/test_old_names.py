"""Old public names work at their old place, with a warning that names the new one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import toolwire
import toolwire.types
from toolwire import Decision, RegistrationError, ToolRegistry
from toolwire.types import ToolwireDeprecationWarning

MOVED = {
    **{f"toolwire.{name}": f"toolwire.{home}.{name}" for name, home in vars(toolwire)["_MOVED"].items()},
    **{f"toolwire.types.{name}": f"toolwire.testing.{name}" for name in vars(toolwire.types)["_MOVED"]},
}


@pytest.mark.parametrize("old", sorted(MOVED))
def test_a_name_that_moved_is_still_at_its_old_place_with_a_warning(old: str) -> None:
    (module, _, name), home = old.rpartition("."), MOVED[old].rpartition(".")[0]
    with pytest.warns(ToolwireDeprecationWarning) as caught:
        found = getattr(import_module(module), name)
    assert [(str(one.message), one.filename) for one in caught] == [
        (f"{old} is deprecated since 0.1: use {MOVED[old]}", __file__)
    ]
    assert found is getattr(import_module(home), name)
    assert name in import_module(home).__all__
    assert name not in import_module(module).__all__


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


REPLACED: dict[str, str] = {
    "accept_mcp_tools": "mcp.accept(server)",
    "disable_background_calls": "configure(background_calls=False)",
    "disable_result_pages": "configure(result_pages=False)",
    "disable_tool_search": "configure(tool_search=False)",
    "disable_user_questions": "configure(user_questions=False)",
    "enable_background_calls": "configure(background_calls=True)",
    "enable_result_pages": "configure(result_pages=True)",
    "enable_tool_search": "configure(tool_search=True)",
    "enable_user_questions": "configure(user_questions=True)",
    "mcp_servers": "mcp.names",
    "register_mcp_server": "mcp.add(config)",
    "replace_policy": "configure(policy=...)",
    "update_mcp_servers": "mcp.update(config)",
    "use_approver": "configure(approver=...)",
    "use_middleware": "configure(middleware=[...])",
    "use_policy": "configure(rules=...)",
    "use_visibility": "configure(visible=...)",
}


def test_old_methods_do_what_the_new_ones_do_and_warn(recwarn: pytest.WarningsRecorder) -> None:
    registry: Any = ToolRegistry()
    registry.register(add)
    used: dict[str, list[Any]] = {
        "use_policy": [[{"tool": "add", "effect": "deny"}]],
        "replace_policy": [[{"tool": "add", "effect": "confirm"}]],
        "use_approver": [lambda _: Decision(verdict="approve")],
        "use_middleware": [lambda call, call_next: call_next(call)],
        "use_visibility": [lambda name, caller: name != "hidden"],
        "register_mcp_server": [{"mcpServers": {}}],
        "update_mcp_servers": [{"mcpServers": {}}],
    }
    on = {"tool_search": {"search_tools"}, "result_pages": {"read_result"}, "user_questions": {"ask_user"}}
    on["background_calls"] = {"start_call", "poll_call", "cancel_call"}
    for name, arguments in used.items():
        getattr(registry, name)(*arguments)
    for name, tools in on.items():
        getattr(registry, f"enable_{name}")()
        assert {*registry} == {"add", *tools}
        getattr(registry, f"disable_{name}")()
        assert {*registry} == {"add"}
    with pytest.raises(RegistrationError, match="no MCP server is named 's'"):
        registry.accept_mcp_tools("s")
    assert registry.mcp_servers == ()
    assert (registry.permission_of("add"), registry.invoke("add", {"a": 1, "b": 2}).data) == ("confirm", 3)
    assert {str(one.message).partition(" ")[0]: str(one.message) for one in recwarn} == {
        name: f"{name} is deprecated since 0.1: use {new}" for name, new in REPLACED.items()
    }
    assert {(one.category, one.filename) for one in recwarn} == {(ToolwireDeprecationWarning, __file__)}


def old_names(kind: type) -> set[str]:
    return {name for base in kind.__mro__ if base.__module__ == "toolwire.facade.old_names" for name in vars(base)}


def test_only_the_documented_methods_are_public() -> None:
    found = {name for name in dir(ToolRegistry) if not name.startswith("_")}
    assert found & old_names(ToolRegistry) == REPLACED.keys()
    assert sorted(found - old_names(ToolRegistry)) == [
        "agent_toolkits",
        "ainvoke",
        "background",
        "close",
        "configure",
        "create_agent_toolkit",
        "disable",
        "disable_code_execution",
        "disabled_tools",
        "enable",
        "enable_code_execution",
        "enable_logging",
        "enable_tracing",
        "explain_call",
        "get_agent_toolkit",
        "get_execution_log",
        "get_tool",
        "invoke",
        "list_tools",
        "list_toolspecs",
        "mcp",
        "observe",
        "permission_of",
        "policy",
        "register",
        "register_mcp_client",
        "register_openapi",
        "register_tool_to_library",
        "remove_mcp_servers",
        "run_program",
        "to_toolspecs",
        "tool_library",
        "unregister",
    ]
