"""The extension `io.modelcontextprotocol/tasks` of MCP 2026-07-28: its name, its messages, and who has declared it."""

from __future__ import annotations

from typing import Any, Literal

import mcp_types as types

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
"""The requests of the extension."""


class TaskMade(types.Result):
    """The answer to a call that has become a task."""

    result_type: Literal["task"] = "task"
    task_id: str


class TaskParams(types.RequestParams):
    """The parameters of a request about one task."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """Answers to the questions of a task, by their keys."""

    input_responses: dict[str, Any]


def has_tasks(capabilities: types.ClientCapabilities | types.ServerCapabilities | None) -> bool:
    """True if a client or server has declared the extension."""
    return capabilities is not None and TASKS_EXTENSION in (capabilities.extensions or {})
