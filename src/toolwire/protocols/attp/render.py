"""Rendering of calls as an ATTP reply with one program, and of results as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolwire.protocols.right_call import RightCall
from toolwire.protocols.text.python_source import call_source
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

_ILLEGAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_IN_BLOCK = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\\]|"(?=""|\Z)')
_IN_ONE_LINE = re.compile(r'[\x00-\x08\x0a-\x1f\x7f\\"]')


def render_attp(calls: Sequence[ToolCall], *, thought: str = "", target: str = "") -> str:
    """Returns the reply with which a model would make these calls.

    A call of `code_execution` becomes its own program. Other calls become one program that makes them in order. Its
    result is the result of the only call, or the list of all results.

    Raises:
        ConfigurationError: No calls are given, or a program is given together with other calls. One reply holds one
            program.
        Unrepresentable: An argument has no Python literal.
    """
    return success_document(thought=thought, target=target, code=_program(calls))


def format_attp(results: Sequence[ToolResult]) -> str:
    """Returns the results as text. Each of several results has a heading with its number and its call's name."""
    if len(results) == 1:
        return results[0].text
    return "\n".join(
        f"{_heading(result, number, len(results))}\n{result.text}" for number, result in enumerate(results, 1)
    )


def attp_right_form(calls: Sequence[RightCall]) -> str:
    """Returns the right form of calls as lines of Python."""
    return "\n".join(call_source(call.tool.name, call.arguments, call.tool.visible_parameters) for call in calls)


def success_document(*, thought: str, target: str, code: str) -> str:
    """Returns the TOML of a reply that runs this code."""
    return (
        f"thought = {_toml_string(thought)}\n\n[tool_call]\n"
        f'status = "success"\ntarget = {_toml_string(target)}\ncode = {_block(code)}\n'
    )


def fail_document(*, thought: str, message: str) -> str:
    """Returns the TOML of a reply that reports a failure."""
    return f'thought = {_toml_string(thought)}\n\n[tool_call]\nstatus = "fail"\nmessage = {_toml_string(message)}\n'


def _program(calls: Sequence[ToolCall]) -> str:
    if len(calls) == 1 and calls[0].name == CODE_EXECUTION:
        return _code(calls[0].arguments)
    if not calls or any(call.name == CODE_EXECUTION for call in calls):
        raise ConfigurationError(
            f"one ATTP reply holds one program: render {len(calls)} calls with {CODE_EXECUTION!r} one at a time"
        )
    if len(calls) == 1:
        return f"__result__ = {call_source(calls[0].name, calls[0].arguments)}\n"
    lines = [f"result_{number} = {call_source(call.name, call.arguments)}\n" for number, call in enumerate(calls, 1)]
    names = ", ".join(f"result_{number}" for number in range(1, len(calls) + 1))
    return f"{''.join(lines)}__result__ = [{names}]\n"


def _code(arguments: Mapping[str, Any]) -> str:
    code = arguments.get("code")
    if not isinstance(code, str) or len(arguments) != 1:
        raise ConfigurationError(
            f"a call of {CODE_EXECUTION!r} has one argument, code, a string; it has {sorted(arguments)}"
        )
    return code


def _toml_string(value: str) -> str:
    if "\n" in value:
        is_plain = "\\" not in value and '"' not in value and not _ILLEGAL.search(value)
        return f'"""\n{value}"""' if is_plain else _block(value)
    return f'"{_IN_ONE_LINE.sub(_escape, value)}"'


def _block(value: str) -> str:
    """Returns the value in triple quotes, as a literal string if TOML allows it."""
    if "'''" not in value and not value.endswith("'") and not _ILLEGAL.search(value):
        return f"'''\n{value}'''"
    return f'"""\n{_IN_BLOCK.sub(_escape, value)}"""'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{character}" if character in '\\"' else f"\\u{ord(character):04X}"


def _heading(result: ToolResult, number: int, total: int) -> str:
    name = "" if result.call is None else " ".join(result.call.name.split())
    return f"[{number}/{total}] {name}".rstrip()
