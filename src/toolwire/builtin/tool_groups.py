"""`activate_tool_groups`: lets a model switch groups of tools by itself, where their owner allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolwire.catalogue.groups import Groups, ToolGroup
from toolwire.catalogue.selection import Selection
from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import ACTIVATE_TOOL_GROUPS
from toolwire.vocabulary.results import ToolResult

DESCRIPTION = (
    "Make more tools available, or put some away. Tools belong to groups; only those of active groups can be called, "
    "from the next turn on."
)

_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "groups": {**_NAMES, "description": "Names of the groups to activate"},
        "deactivate": {**_NAMES, "description": "Names of groups that are not needed any more", "default": []},
    },
    "required": ["groups"],
    "additionalProperties": False,
}


def activate_tool_groups_tool(groups: Groups, selection: Callable[[], Selection]) -> Tool:
    """Returns the tool as models see it.

    Its description lists the groups of `selection()` that a model may switch, and has the notes of active groups.
    """

    def switchable_groups() -> list[ToolGroup]:
        return [group for group in selection().groups() if groups.is_switchable(group.name)]

    def describe() -> str:
        lines = [f"- {group.name} ({_state(group)}): {group.description}" for group in switchable_groups()]
        notes = selection().group_notes()
        told = [DESCRIPTION, "The groups are:" if lines else "There are no groups now.", *lines]
        return "\n".join([*told, "", notes] if notes else told)

    def activate_tool_groups(groups: list[str], deactivate: list[str]) -> ToolResult:
        wrong = _wrong(groups, deactivate, switchable_groups())
        if wrong is not None:
            return wrong
        _switch(groups, deactivate)
        return ToolResult(
            True, _groups_text(groups, selection(), [group for group in switchable_groups() if group.active])
        )

    def _switch(chosen: Sequence[str], deactivate: Sequence[str]) -> None:
        groups.switch(deactivate, active=False)
        groups.switch(chosen, active=True)

    return from_schema(ACTIVATE_TOOL_GROUPS, describe, _SCHEMA, None, activate_tool_groups)


def _wrong(chosen: Sequence[str], deactivate: Sequence[str], offered: Sequence[ToolGroup]) -> ToolResult | None:
    names = [group.name for group in offered]
    unknown = [name for name in (*chosen, *deactivate) if name not in names]
    both = [name for name in chosen if name in deactivate]
    if unknown:
        message = f"There is no group {unknown[0]!r} that you may switch; nothing was changed."
    elif both:
        message = f"The group {both[0]!r} is to be activated and deactivated at once; nothing was changed."
    else:
        return None
    hint = f"The groups are: {', '.join(names)}." if names else "There are no groups that you may switch."
    return ToolResult.failed("invalid_arguments", message, hint=hint)


def _groups_text(chosen: Sequence[str], selection: Selection, active: Sequence[ToolGroup]) -> str:
    tools = [entry.name for entry in selection.in_groups(chosen)]
    lines = [f"Active groups: {', '.join(group.name for group in active) or 'none'}."]
    if tools:
        lines.append(f"You can now call: {', '.join(tools)}.")
    return "\n".join([*lines, *(group.notes for group in active if group.name in chosen and group.notes)])


def _state(group: ToolGroup) -> str:
    return "active" if group.active else "not active"
