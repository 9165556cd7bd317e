"""Calls as other models' chat templates write them, each made of a tool's name and its arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Wrapping = Callable[[str, Mapping[str, Any]], str]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _call(name: str, arguments: Mapping[str, Any], keys: tuple[str, str] = ("name", "arguments")) -> str:
    return _json({keys[0]: name, keys[1]: arguments})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _lines(arguments: Mapping[str, Any], line: str) -> str:
    """A line for each argument; `{key}` and `{value}` in it stand for its name and its text."""
    return "\n".join(line.format(key=key, value=_text(value)) for key, value in arguments.items())


def _invoke(name: str, arguments: Mapping[str, Any], prefix: str = "") -> str:
    inner = _lines(arguments, f'<{prefix}parameter name="{{key}}">{{value}}</{prefix}parameter>')
    return f'<{prefix}invoke name="{name}">\n{inner}\n</{prefix}invoke>'


def _function_tag(name: str, arguments: Mapping[str, Any]) -> str:
    inner = _lines(arguments, "<parameter={key}>\n{value}\n</parameter>")
    return f"<function={name}>\n{inner}\n</function>"


def _pairs(name: str, arguments: Mapping[str, Any]) -> str:
    inner = _lines(arguments, "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>")
    return f"<tool_call>{name}\n{inner}\n</tool_call>"


def _python(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


READ: dict[str, Wrapping] = {
    "function_call": lambda name, given: f"<function_call>{_call(name, given)}</function_call>",
    "function_calls with JSON": lambda name, given: f"<function_calls>\n[{_call(name, given)}]\n</function_calls>",
    "tool_calls": lambda name, given: f"<tool_calls>\n[{_call(name, given)}]\n</tool_calls>",
    "TOOLCALL": lambda name, given: f"<TOOLCALL>[{_call(name, given)}]</TOOLCALL>",
    "tool_use": lambda name, given: f"<tool_use>\n{_call(name, given, ('name', 'input'))}\n</tool_use>",
    "functools": lambda name, given: f"functools[{_call(name, given)}]",
    "TOOL_CALLS": lambda name, given: f"[TOOL_CALLS] [{_call(name, given)}]",
    "TOOL_CALLS with ARGS": lambda name, given: f"[TOOL_CALLS]{name}[ARGS]{_json(given)}",
    "tool_call token": lambda name, given: f"<|tool_call|>[{_call(name, given)}]<|/tool_call|>",
    "plugin": lambda name, given: (
        f"<|action_start|><|plugin|>\n{_call(name, given, ('name', 'parameters'))}<|action_end|>"
    ),
    "START_ACTION": lambda name, given: (
        "<|START_ACTION|>" + _json([{"tool_call_id": "0", "tool_name": name, "parameters": given}]) + "<|END_ACTION|>"
    ),
    "fullwidth tokens": lambda name, given: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n"
        f"```json\n{_json(given)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
    ),
    "fullwidth tokens, name first": lambda name, given: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_json(given)}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "section tokens": lambda name, given: (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>"
        f"{_json(given)}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "channels": lambda name, given: (
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{_json(given)}<|call|>"
    ),
    "channels, recipient first": lambda name, given: (
        f"<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>{_json(given)}<|call|>"
    ),
    "flowers": lambda name, given: f"✿FUNCTION✿: {name}\n✿ARGS✿: {_json(given)}",
    "function tag with JSON": lambda name, given: f"<function={name}>{_json(given)}</function>",
    "function tag with parameters": _function_tag,
    "function tag in tool_call": lambda name, given: f"<tool_call>\n{_function_tag(name, given)}\n</tool_call>",
    "invoke": _invoke,
    "invoke in function_calls": lambda name, given: f"<function_calls>\n{_invoke(name, given)}\n</function_calls>",
    "invoke with a prefix": lambda name, given: f"<m:tool_call>\n{_invoke(name, given, 'm:')}\n</m:tool_call>",
    "key and value tags": _pairs,
    "name and JSON in tool_call": lambda name, given: f"<tool_call>{name}\n```json\n{_json(given)}\n```\n</tool_call>",
    "name as a tag": lambda name, given: f"<{name}>{_json(given)}</{name}>",
    "tags of parameters": lambda name, given: f"<{name}>\n{_lines(given, '<{key}>{value}</{key}>')}\n</{name}>",
    "tags of parameters in tool_call": lambda name, given: (
        f"<tool_call>\n<{name}>{_lines(given, '<{key}><![CDATA[{value}]]></{key}>')}</{name}>\n</tool_call>"
    ),
    "Action with input": lambda name, given: f"Thought: I look.\nAction: {name}\nAction Input: {_json(given)}",
    "Action with JSON": lambda name, given: f"Action:\n```json\n{_call(name, given, ('action', 'action_input'))}\n```",
    "Action with a call": lambda name, given: f"Action: {_python(name, given)}",
    "JSON of a tool": lambda name, given: f"<tool>{_call(name, given, ('tool', 'tool_input'))}</tool>",
    "python list": lambda name, given: f"[{_python(name, given)}]",
    "python call": _python,
    "python_tag": lambda name, given: f"<|python_tag|>{_python(name, given).replace('(', '.call(', 1)}",
    "tool_code": lambda name, given: f"```tool_code\n{_python(name, given)}\n```",
    "python list in tool_call": lambda name, given: f"<tool_call>[{_python(name, given)}]</tool_call>",
}
"""Wrappings with one clear reading."""

REFUSED: dict[str, Wrapping] = {
    "a list in prose": lambda name, given: f"I will now call {_call(name, given)} for you.",
    "JSON of a tool": lambda name, given: _call(name, given, ("tool", "tool_args_of_it")).replace("_of_it", ""),
    "JSON with the tool for a key": lambda name, given: _json({name: given}),
    "JSON of calls": lambda name, given: _json({"calls": [{"name": name, "arguments": given}]}),
    "arguments beside the name": lambda name, given: _json({"name": name, **given}),
    "attributes": lambda name, given: (
        f"<{name} " + " ".join(f'{key}="{_text(value)}"' for key, value in given.items() if value != "x") + " a='1'/>"
    ),
    "tool_name": lambda name, given: f"<use><tool_name>{name}</tool_name><data>{_json(given)}</data></use>",
    "Action with text": lambda name, given: f"Action: {name}\nAction Input: {' '.join(map(_text, given.values()))}",
    "Action with brackets": lambda name, given: f"Action: {name}[{_text(next(iter(given.values()), ''))}]",
    "a list with another value": lambda name, given: f"[{_python(name, given)}, 3]",
    "a call of a variable": lambda name, given: f"[{name}(query=words)]",
    "positional": lambda name, given: f"{name}({', '.join(repr(value) for value in given.values())}, 1)",
    "a call and more code": lambda name, given: f"```tool_code\nx = {_python(name, given)}\nprint(x)\n```",
    "invoke cut off": lambda name, given: _invoke(name, given)[:-12],
    "function_call cut off": lambda name, given: f"<function_call>{_call(name, given)[:-1]}",
    "fenced among text": lambda name, given: f"So:\n```xml\n{_invoke(name, given)}\n```\nI wait.",
}
"""Shapes of a call that leave a doubt, or that no reader knows."""
