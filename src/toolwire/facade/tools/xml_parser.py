"""Calls in XML, for applications that drive the model themselves: reading calls, describing tools, writing results."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from toolwire.protocols.tool_names import as_known_tools
from toolwire.protocols.xml.parse import read_xml
from toolwire.protocols.xml.prompt import tool_instruction
from toolwire.protocols.xml.render import result_block
from toolwire.vocabulary.calls import Problem, ToolCall, WrittenArguments
from toolwire.vocabulary.model_text import show
from toolwire.vocabulary.results import ToolResult

_LOG = logging.getLogger("toolwire.xml")


class ToolCalls(list[ToolCall]):
    """The calls of a text, in order.

    Attributes:
        problems: Each repair, and each reason why a call was not read. Empty for a well written text.
    """

    def __init__(self, calls: Iterable[ToolCall] = (), problems: Iterable[Problem] = ()) -> None:
        super().__init__(calls)
        self.problems = tuple(problems)


def _as_written(call: ToolCall) -> ToolCall:
    """Returns a call of an unknown tool, whose arguments are converted once the tool is known."""
    return replace(call, arguments=WrittenArguments(call.arguments))


class XMLToolCallParser:
    """Reads calls in XML out of a model's text.

    >>> text = "<tool_call><name>add</name><params><a>1</a><b>2</b></params></tool_call>"
    >>> [(call.name, dict(call.params)) for call in XMLToolCallParser.parse_tool_calls(text)]
    [('add', {'a': 1, 'b': 2})]
    """

    @staticmethod
    def parse_tool_calls(text: str, tools: Iterable[Any] = (), *, strict: bool = True) -> ToolCalls:
        """Returns the calls in a text, in order.

        If one call cannot be read, no call is returned, since the model meant them together; `strict=False` returns the
        others. In both cases `.problems` has the reason, and the logger `toolwire.xml` gets one warning.

        The schemas of `tools` convert the values. Without them `true`, `false`, whole numbers and decimals are
        converted if they write the same text again, and other values stay text. `invoke`, `execute_tool` and
        `ToolSpec.run` convert such `params` by the schema of the tool that they call. A `BaseTool` and `execute_tool`
        also convert a copy of them, such as `tool(**call.params)`.
        """
        known = as_known_tools(tools)
        read = read_xml(text, known, is_strict=strict)
        calls = [call if call.name in known.schemas else _as_written(call) for call in read.calls]
        unread = [problem for problem in read.problems if not problem.repaired]
        if unread and text.strip():
            reasons = " ".join(f"{problem.place}: {problem.message}".removeprefix(": ") for problem in unread)
            _LOG.warning("A reply was read only in part; it gave %d calls. %s", len(calls), reasons)
        return ToolCalls(calls, read.problems)


def parse_tool_calls(text: str, tools: Iterable[Any] = (), *, strict: bool = True) -> ToolCalls:
    """Returns the calls in a text, as `XMLToolCallParser.parse_tool_calls` reads them."""
    return XMLToolCallParser.parse_tool_calls(text, tools, strict=strict)


class ToolPromptGenerator:
    """Writes the texts for a model that calls tools in XML: the tools for its system prompt, and results.

    >>> print(ToolPromptGenerator.format_tool_result("add", {"success": True, "data": 3}))
    <tool_result>
      <name>add</name>
      <success>true</success>
      <data><![CDATA[3]]></data>
    </tool_result>
    """

    @staticmethod
    def generate_tool_instruction(tools: Iterable[Any]) -> str:
        """Returns each tool with its parameters and a call of it in XML, then advice. A tool is any object that can be
        one.
        """
        return tool_instruction(tools)

    @staticmethod
    def format_tool_result(name: str, result: Mapping[str, Any] | ToolResult) -> str:
        """Returns a result as XML; its content cannot end the CDATA, and no reader takes it for a call.

        `result` is `ToolResult.to_dict()`: its data, or its error when `success` is false. A mapping without `success`
        is data itself.

        Raises:
            Unrepresentable: data that JSON cannot hold.
        """
        if isinstance(result, ToolResult):
            return result_block(name, success=result.success, text=result.text)
        success = bool(result.get("success", True))
        data = result.get("data") if "success" in result else result
        return result_block(name, success=success, text=show(data) if success else str(result.get("error") or ""))
