"""Old names of the methods of registries and toolkits. Each works until 0.3 and warns with the new name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolwire.catalogue.entry import Middleware
from toolwire.catalogue.selection import Visible
from toolwire.facade.deprecation import deprecated
from toolwire.facade.mcp_servers import McpTools
from toolwire.facade.policy_sources import PolicySource
from toolwire.permission.approval import Approver

if TYPE_CHECKING:
    from toolwire.mcp.config import McpServerProblem
    from toolwire.vocabulary.kept_text import Spill


class OldMcpNames(McpTools):
    """The old names that registries and toolkits share."""

    @property
    @deprecated(since="0.1", use="mcp.names")
    def mcp_servers(self) -> tuple[str, ...]:
        return self.mcp.names

    @deprecated(since="0.1", use="mcp.add(config)")
    def register_mcp_server(self, config: Mapping[str, Any] | str | Path, /, **options: Any) -> list[McpServerProblem]:
        return self.mcp.add(config, **options)

    @deprecated(since="0.1", use="mcp.update(config)")
    def update_mcp_servers(self, config: Mapping[str, Any] | str | Path, /, **options: Any) -> list[McpServerProblem]:
        return self.mcp.update(config, **options)

    @deprecated(since="0.1", use="mcp.accept(server)")
    def accept_mcp_tools(self, server: str, tools: Iterable[str] | None = None) -> list[str]:
        return self.mcp.accept(server, tools)


class Configurable(Protocol):
    """An object with `configure`: a registry."""

    @property
    def configure(self) -> Callable[..., None]: ...


class OldRegistryNames(OldMcpNames):
    """The old names of a registry."""

    @deprecated(since="0.1", use="configure(rules=...)")
    def use_policy(self: Configurable, policy: PolicySource) -> None:
        self.configure(rules=policy)

    @deprecated(since="0.1", use="configure(policy=...)")
    def replace_policy(self: Configurable, policy: PolicySource) -> None:
        self.configure(policy=policy)

    @deprecated(since="0.1", use="configure(approver=...)")
    def use_approver(self: Configurable, approver: Approver) -> None:
        self.configure(approver=approver)

    @deprecated(since="0.1", use="configure(middleware=[...])")
    def use_middleware(self: Configurable, *layers: Middleware) -> None:
        self.configure(middleware=layers)

    @deprecated(since="0.1", use="configure(visible=...)")
    def use_visibility(self: Configurable, visible: Visible) -> None:
        self.configure(visible=visible)

    @deprecated(since="0.1", use="configure(tool_search=True)")
    def enable_tool_search(self: Configurable, *, always: Iterable[str] = ()) -> None:
        self.configure(tool_search=always)

    @deprecated(since="0.1", use="configure(tool_search=False)")
    def disable_tool_search(self: Configurable) -> None:
        self.configure(tool_search=False)

    @deprecated(since="0.1", use="configure(result_pages=True)")
    def enable_result_pages(self: Configurable, spill: Spill | None = None) -> None:
        self.configure(result_pages=True if spill is None else spill)

    @deprecated(since="0.1", use="configure(result_pages=False)")
    def disable_result_pages(self: Configurable) -> None:
        self.configure(result_pages=False)

    @deprecated(since="0.1", use="configure(user_questions=True)")
    def enable_user_questions(self: Configurable) -> None:
        self.configure(user_questions=True)

    @deprecated(since="0.1", use="configure(user_questions=False)")
    def disable_user_questions(self: Configurable) -> None:
        self.configure(user_questions=False)

    @deprecated(since="0.1", use="configure(background_calls=True)")
    def enable_background_calls(self: Configurable) -> None:
        self.configure(background_calls=True)

    @deprecated(since="0.1", use="configure(background_calls=False)")
    def disable_background_calls(self: Configurable) -> None:
        self.configure(background_calls=False)
