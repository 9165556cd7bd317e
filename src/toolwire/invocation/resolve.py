"""Finds the entry that a call names, or helps the model to find the right one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from toolwire.catalogue.entry import Entry
from toolwire.catalogue.groups import ToolGroup
from toolwire.catalogue.selection import Selection
from toolwire.catalogue.similar_names import nearest
from toolwire.definition.naming import NAME_LIMIT
from toolwire.invocation.judge import is_denied
from toolwire.invocation.owners_fault import owners_fault
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import ACTIVATE_TOOL_GROUPS, CODE_EXECUTION, ToolCall
from toolwire.vocabulary.results import ToolResult

LISTED_NAMES = 20
"""Number of tool names that the answer to an unknown name lists.

It covers a small toolkit and is short for a large one.
"""


def resolve(call: ToolCall, scope: Scope) -> Entry | ToolResult:
    """Returns the entry that the call names, or a failed result with a hint."""
    entry = scope.tools.find(call.name)
    if entry is not None:
        refusal = entry.tool.withheld()
        if refusal is not None:
            return replace(refusal, call=call)
        return entry if entry.disabled is None else _failure_of_disabled(call, entry.disabled)
    if isinstance(scope.tools, Selection):
        group = scope.tools.inactive_group(call.name)
        if group is not None:
            return _inactive(call, group, can_activate=scope.tools.can_activate(group))
    return _failure_of_unknown(call, scope)


def _failure_of_disabled(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult.failed(
        "unavailable",
        f"{call.name!r} is disabled: {reason.removesuffix('.')}.",
        hint="It did not run. Do without it, or tell the user.",
        data={"reason": reason, "is_started": False},
        call=call,
    )


def _inactive(call: ToolCall, group: ToolGroup, *, can_activate: bool) -> ToolResult:
    message = f"{call.name!r} belongs to the tool group {group.name!r}, which is not active."
    if can_activate:
        hint = f"Call {ACTIVATE_TOOL_GROUPS!r} with groups={[group.name]!r} first, then repeat this call."
    else:
        return owners_fault(
            "inactive_tool",
            message,
            hint="Do without it.",
            for_owner=f"update_tool_groups([{group.name!r}], active=True) activates it.",
            data={"group": group.name},
            call=call,
        )
    return ToolResult.failed("inactive_tool", message, hint=hint, data={"group": group.name}, call=call)


def _failure_of_unknown(call: ToolCall, scope: Scope) -> ToolResult:
    if call.name == CODE_EXECUTION:
        return owners_fault(
            "unknown_tool",
            "Programs cannot be run here.",
            hint="Call the tools one by one.",
            for_owner="Session(programs=True) or registry.enable_code_execution() lets programs run.",
            call=call,
        )
    entries = [entry for entry in scope.tools if may_name(entry, scope)]
    names = [entry.name for entry in entries]
    members = _members(call.name, entries)
    # A group of one tool can only mean that tool. Of several, the nearest name would be a guess.
    near = members[0] if len(members) == 1 else None if members else nearest(call.name, names)
    return ToolResult.failed(
        "unknown_tool",
        f"There is no tool named {_quote_name(call.name)}.",
        hint=f"Did you mean {near!r}?" if near else _listing(names, members),
        data={"nearest": near, "tools": names},
        call=call,
    )


def may_name(entry: Entry, scope: Scope) -> bool:
    """True for a tool that a call may name: the answer to a wrong name must not tell of any other."""
    return entry.disabled is None and entry.tool.withheld() is None and not is_denied(entry, scope.policy)


def _members(name: str, entries: Iterable[Entry]) -> list[str]:
    """Returns the tools of the group or server that a call names in place of a tool."""
    beginnings = tuple(f"{name}{separator}" for separator in "._/-:")
    return [entry.name for entry in entries if entry.group == name or entry.name.startswith(beginnings)]


def _quote_name(name: str) -> str:
    return repr(name) if len(name) <= NAME_LIMIT else f"{name[:NAME_LIMIT]!r}..."


def _listing(names: list[str], members: list[str]) -> str:
    """Lists the members of the group that the call names, or all tools if it names none."""
    if not names:
        return "There are no tools here: answer without one."
    listed = members or names
    more = f" and {len(listed) - LISTED_NAMES} more" if len(listed) > LISTED_NAMES else ""
    return f"{'Call one of its tools' if members else 'The tools are'}: {', '.join(listed[:LISTED_NAMES])}{more}."
