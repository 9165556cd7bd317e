"""Calls and results as XML. The parser restores every value exactly, because no value can end its CDATA."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.conversion import convert_argument, guess
from toolwire.protocols.reading.markup import CDATA, CDATA_END
from toolwire.protocols.right_call import RightCall, has_blank, json_form
from toolwire.protocols.tool_names import KnownTools, as_known_tools
from toolwire.protocols.xml.element import NAMED_TAGS, CallTag
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain_value

_TAG = re.compile(r"[^\W\d][\w.\-]*+")
_PLAIN_NAME = re.compile(r"[^\s<>&]+(?: [^\s<>&]+)*")
_BREAKS = re.compile(r"]]>|<!\[CDATA\[")
_UNREADABLE = object()
"""Stands for the value of a text that a schema refuses. No value is the same."""

_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_xml(calls: Sequence[ToolCall], *, tools: Iterable[Any] = (), tag: CallTag = "tool_call") -> str:
    """Returns the reply with which a model would make these calls; empty without calls.

    A value that cannot be restored from its text alone is marked `type="json"`, such as the string `10`, a list or
    null. With `tools`, their schemas restore most values without the mark.

    Raises:
        Unrepresentable: JSON cannot hold one of the arguments.
    """
    known = as_known_tools(tools)
    return "\n".join(_call_element(call.name, call.arguments, known, tag) for call in calls)


def xml_right_form(calls: Sequence[RightCall], *, tag: CallTag = "tool_call") -> str:
    """Returns the right form of calls. A blank stands in CDATA, as its value would."""
    known = as_known_tools(call.tool for call in calls)
    return "\n".join(_call_element(call.tool.name, call.arguments, known, tag) for call in calls)


def format_xml(results: Sequence[ToolResult]) -> str:
    """Returns a `<tool_result>` for each result, in order: the tool's name, and its data or its error with a hint."""
    return "\n".join(
        result_block("" if result.call is None else result.call.name, success=result.success, text=result.text)
        for result in results
    )


def cdata(text: str) -> str:
    """Returns the text as CDATA that no part of the text can end early."""
    broken = _BREAKS.sub(lambda found: f"{found[0][:2]}{CDATA_END}{CDATA}{found[0][2:]}", text)
    return f"{CDATA}{broken}{CDATA_END}"


def parameter_tag(name: str) -> str:
    """Returns the content of a parameter's opening tag: its name, or `param name="my name"` for an invalid tag name."""
    if _TAG.fullmatch(name) and name not in NAMED_TAGS:
        return name
    quoted = json.dumps(name, ensure_ascii=False)
    return "param name=" + quoted.replace("<", "\\u003c").replace(">", "\\u003e")


def result_block(name: str, *, success: bool, text: str) -> str:
    """Returns one result as a block that is never read as a call. Characters that XML forbids become U+FFFD."""
    tag = "data" if success else "error"
    return (
        f"<tool_result>\n  <name>{_name(_readable(name))}</name>\n  <success>{str(success).lower()}</success>\n"
        f"  <{tag}>{cdata(_readable(text))}</{tag}>\n</tool_result>"
    )


def _readable(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


def _call_element(tool: str, arguments: Mapping[str, Any], known: KnownTools, tag: CallTag) -> str:
    schema = known.schema(tool)
    lines = [f"    {_parameter(name, value, schema)}\n" for name, value in arguments.items()]
    params = f"<params>\n{''.join(lines)}  </params>" if lines else "<params></params>"
    return f"<{tag}>\n  <name>{_name(tool)}</name>\n  {params}\n</{tag}>"


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else cdata(name)


def _parameter(name: str, value: Any, schema: Mapping[str, Any] | None) -> str:
    if has_blank(value):
        return _element(name, json_form(value))
    try:
        value = plain_value(value)
    except Unrepresentable as error:
        raise Unrepresentable(error.what, path=f"{name}{error.path}") from error
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    mark = ""
    if (
        "\r\n" in text
        or not _is_same(_read_back(name, text, schema), value)
        or (schema is None and _is_ambiguous(value))
    ):
        text, mark = json.dumps(value, ensure_ascii=False), ' type="json"'
    return _element(name, text, mark)


def _element(name: str, text: str, mark: str = "") -> str:
    tag = parameter_tag(name)
    return f"<{tag}{mark}>{cdata(text)}</{tag.partition(' ')[0]}>"


def _read_back(name: str, text: str, schema: Mapping[str, Any] | None) -> Any:
    if schema is None:
        return guess(text)
    try:
        return convert_argument(name, text, schema).value
    except Refusal:
        return _UNREADABLE


def _is_ambiguous(value: Any) -> bool:
    """True for a string that some schema would convert to another type."""
    if not isinstance(value, str):
        return False
    try:
        return not isinstance(json.loads(value), str)
    except (ValueError, RecursionError):
        return False


def _is_same(read: Any, value: Any) -> bool:
    return type(read) is type(value) and json.dumps(read) == json.dumps(value)
