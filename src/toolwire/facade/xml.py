"""Calls in XML for those who drive the model themselves: reading them, telling of tools, writing results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.protocols.xml_parse import parse_xml
from toolwire.protocols.xml_prompt import tool_instruction
from toolwire.protocols.xml_render import result_block
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import show


class XMLToolCallParser:
    """Reads calls in XML out of a model's text."""

    @staticmethod
    def parse_tool_calls(text: str, tools: Iterable[Any] = ()) -> list[ToolCall]:
        """The calls in a text, in order; none when one of them cannot be read, is cut off, or is only quoted.

        Values are converted by the schemas of `tools`. Without them `true`, `false`, whole numbers and decimals are,
        and all else stays text. The protocol `xml` says why a text gives no calls.
        """
        return list(parse_xml(text, tools).calls)


def parse_tool_calls(text: str, tools: Iterable[Any] = ()) -> list[ToolCall]:
    """The calls in a text, as `XMLToolCallParser.parse_tool_calls` reads them."""
    return XMLToolCallParser.parse_tool_calls(text, tools)


class ToolPromptGenerator:
    """Writes what a model that calls tools in XML is to read."""

    @staticmethod
    def generate_tool_instruction(tools: Iterable[Any]) -> str:
        """Each tool with its parameters and a call of it in XML, then what to mind. Tools are whatever can be one."""
        return tool_instruction(tools)

    @staticmethod
    def format_tool_result(name: str, result: Mapping[str, Any] | ToolResult) -> str:
        """A result as XML; nothing in it ends its CDATA, and no reader takes it for a call.

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
