"""XML: the model writes each call as a `<tool_call>` element with its parameters in CDATA, and its text around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.protocols.base import Language, Thought
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.reading.incoming import is_json
from toolwire.protocols.text_parse import parse_xml
from toolwire.protocols.xml.answer import format_xml, refuse_xml
from toolwire.protocols.xml.element import BLOCK_TAGS
from toolwire.protocols.xml.grammar import xml_grammar
from toolwire.protocols.xml.prompt import describe_xml, xml_tools_text
from toolwire.protocols.xml.render import render_xml
from toolwire.protocols.xml.stream import XmlStream
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

_CALL = re.compile(
    rf"<tool_call(?:\s[^<>]*+)?+>\s*+<[^\W\d]|<name>[^<>]{{1,300}}+</name>\s*+<(?:{BLOCK_TAGS})\s*+/?>|\A\s*+<fail>"
)


@writes_encodable
class Xml:
    """The protocol `xml`. The object has no state."""

    @property
    def name(self) -> str:
        """Always `xml`."""
        return "xml"

    @property
    def is_native(self) -> bool:
        """Always False. The model writes calls into its text."""
        return False

    @property
    def writes_programs(self) -> bool:
        """Always False. `code_execution` is listed among the tools if it is given."""
        return False

    def describe(self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short") -> str:
        """Returns the system prompt: rules, tools and two examples. `thought="full"` asks for thinking in `<think>`.

        Raises:
            ConfigurationError: The language or the thought style is unknown.
        """
        return describe_xml(tools, language=language, thought=thought)

    def tools_text(self, tools: Iterable[Any], *, language: Language = "en") -> str:
        """Returns each tool with a line for each parameter, as in the system prompt.

        Raises:
            ConfigurationError: The language is unknown.
        """
        return xml_tools_text(tools, language=language)

    def recognises(self, reply: Any) -> bool:
        """True if the text contains a call of this form anywhere except in a JSON string."""
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and _CALL.search(reply) is not None and not is_json(reply)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Returns the calls, a failure, a plain text answer, or problems. The tools' schemas convert the arguments.

        For an unknown tool, `true`, `false`, integers and decimals are converted, and all other text stays a string.
        """
        return parse_xml(reply, tools)

    def stream(self, tools: Iterable[Any] = ()) -> XmlStream:
        """Returns a parser for a reply that arrives in pieces of text or UTF-8 bytes."""
        return XmlStream(tools)

    def render(self, calls: Sequence[ToolCall], *, tools: Iterable[Any] = ()) -> str:
        """Returns the reply with which a model would make these calls.

        A value that cannot be restored from its text alone is marked `type="json"`. With `tools`, fewer values need the
        mark.

        Raises:
            Unrepresentable: JSON cannot hold one of the arguments.
        """
        return render_xml(calls, tools=tools)

    def format(self, results: Sequence[ToolResult]) -> str:
        """Returns a `<tool_result>` for each result, in order. The parser never reads one as a call."""
        return format_xml(results)

    def refuse(self, reply: Reply) -> str:
        """Returns the problems and the expected form, or the message of a reply that failed.

        Empty if the reply has calls.
        """
        return refuse_xml(reply)

    def grammar(self, tools: Iterable[Any]) -> str:
        """Returns a GBNF grammar for replies that consist only of calls of these tools.

        Raises:
            ConfigurationError: None of the tools can be called.
        """
        return xml_grammar(tools)
