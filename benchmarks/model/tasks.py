"""Requests with known calls, and the tools that they need, read from a file of JSON lines.

A line with `tools` opens a group: the tools that the prompt of its tasks describes. A line with `request` is a task.

    {"group": "office", "language": "en", "tools": [
        {"name": "clock.zone", "description": "...", "parameters": {JSON schema}, "effect": "read", "result": "UTC+1"}]}
    {"group": "office", "id": "office-1", "request": "Which time zone has Oslo?", "calls": [
        {"tool": "clock.zone", "arguments": {"city": ["Oslo", "Oslo, Norway"]}, "optional": ["country"]}]}

`calls` are all calls that solve the task. An argument lists the values that count as right; an empty list accepts every
value. Arguments that `optional` names may be left out, and so may one whose value is the default of the schema. A tool
returns its `result`, or that of the task's call. `language` ("en"), `effect` and `result` ("done") may be left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolwire import ToolSpec
from toolwire.vocabulary.calls import ToolCall

OWN_TASKS = Path(__file__).with_name("tasks.jsonl")

_LOOSE = re.compile(r"[\s,./_*^'\"-]+")
"""Characters that do not tell two right texts apart: `New York, NY` and `new york ny`."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """One call that a task needs.

    Attributes:
        tool: The tool's name.
        arguments: The right values of each argument; an empty list accepts every value.
        optional: Arguments that may be left out.
        result: The value that the tool returns for it, or None for the tool's own.
    """

    tool: str
    arguments: Mapping[str, Sequence[Any]]
    optional: frozenset[str] = frozenset()
    result: Any = None

    def fits(self, call: ToolCall, defaults: Mapping[str, Any]) -> bool:
        """Returns True if the call is this one. Arguments with the default's value count as left out."""
        if call.name != self.tool:
            return False
        given = {name: value for name, value in call.arguments.items() if not _same(value, defaults.get(name))}
        if any(name not in self.arguments for name in given):
            return False
        return all(self._fits(name, given, defaults) for name in self.arguments)

    def _fits(self, name: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
        accepted = self.arguments[name]
        if name not in given:
            is_default = name in defaults and any(_same(value, defaults[name]) for value in accepted)
            return name in self.optional or is_default
        return not accepted or any(_same(given[name], value) for value in accepted)


@dataclass(frozen=True, kw_only=True)
class TaskTool:
    """A tool as a group describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: str | None = None
    result: Any = "done"

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of its parameters."""
        fields: Mapping[str, Any] = self.parameters.get("properties") or {}
        return {name: node["default"] for name, node in fields.items() if "default" in node}


@dataclass(frozen=True, kw_only=True)
class Group:
    """The tools of one prompt."""

    name: str
    tools: tuple[TaskTool, ...]
    language: str = "en"


@dataclass(frozen=True, kw_only=True)
class Task:
    """A request, and the calls that solve it."""

    id: str
    group: Group
    request: str
    calls: tuple[Expected, ...]

    def answer(self, call: ToolCall) -> Any:
        """Returns the result of a call that ran."""
        tool = next(tool for tool in self.group.tools if tool.name == call.name)
        fitting = (expected.result for expected in self.calls if expected.fits(call, tool.defaults))
        found = next(fitting, None)
        return tool.result if found is None else found

    def is_solved(self, ran: Sequence[ToolCall], *, at_once: bool) -> bool:
        """Returns True if the calls that ran are the expected ones. `at_once`: each exactly once, in any order."""
        left = list(self.calls)
        for call in ran:
            defaults = next(tool.defaults for tool in self.group.tools if tool.name == call.name)
            fitting = [expected for expected in self.calls if expected.fits(call, defaults)]
            unused = [expected for expected in fitting if expected in left]
            if not fitting or (at_once and not unused):
                return False
            if unused:
                left.remove(unused[0])
        return not left


def read_tasks(path: Path) -> list[Task]:
    """Returns the tasks of the file, in its order.

    Raises:
        ValueError: A line is not a group or a task of this form.
    """
    groups: dict[str, Group] = {}
    tasks: list[Task] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
            if "tools" in document:
                group = _group(document)
                groups[group.name] = group
            else:
                tasks.append(_task(document, groups))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path}, line {number}: not a group or task, see benchmarks/model/tasks.py: {error!r}"
            ) from error
    return tasks


def spread(tasks: Sequence[Task], number: int) -> list[Task]:
    """Returns `number` tasks at even distances, so that every group and kind has its share."""
    if number >= len(tasks):
        return list(tasks)
    return [tasks[place * len(tasks) // number] for place in range(number)]


def tools_of(task: Task, ran: list[ToolCall]) -> list[ToolSpec]:
    """Returns the group's tools. Each appends its calls to `ran` and returns the known result."""
    return [_spec(tool, task, ran) for tool in task.group.tools]


def _spec(tool: TaskTool, task: Task, ran: list[ToolCall]) -> ToolSpec:
    def run(**arguments: Any) -> Any:
        call = ToolCall(tool.name, arguments)
        ran.append(call)
        return task.answer(call)

    effects: Any = None if tool.effect is None else [tool.effect]
    return ToolSpec.from_jsonschema(
        name=tool.name, description=tool.description, input_schema=tool.parameters, function=run, effects=effects
    )


def _group(document: Mapping[str, Any]) -> Group:
    tools = tuple(TaskTool(**tool) for tool in document["tools"])
    return Group(name=document["group"], tools=tools, language=document.get("language", "en"))


def _task(document: Mapping[str, Any], groups: Mapping[str, Group]) -> Task:
    group = groups[document["group"]]
    calls = tuple(Expected(**{**call, "optional": frozenset(call.get("optional", ()))}) for call in document["calls"])
    unknown = {call.tool for call in calls} - {tool.name for tool in group.tools}
    if unknown:
        raise ValueError(f"the group {group.name!r} has no {sorted(unknown)}")
    return Task(id=document["id"], group=group, request=document["request"], calls=calls)


def _same(value: Any, wanted: Any) -> bool:
    """Compares as a reader would: 10 is 10.0, and the case and punctuation of a text do not matter."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, str) and isinstance(wanted, str):
        return _LOOSE.sub("", value).casefold() == _LOOSE.sub("", wanted).casefold()
    if isinstance(value, list | tuple) and isinstance(wanted, list | tuple):
        return len(value) == len(wanted) and all(map(_same, value, wanted))
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return value.keys() == wanted.keys() and all(_same(value[key], wanted[key]) for key in value)
    return bool(value == wanted)
