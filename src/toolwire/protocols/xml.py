"""XML: a model writes each call as `<tool_call>` with its parameters in CDATA, and its text around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.protocols.base import Language, Thought
from toolwire.protocols.grammar_xml import xml_grammar
from toolwire.protocols.incoming import is_json
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.text_parse import parse_xml
from toolwire.protocols.xml_answer import format_xml, refuse_xml
from toolwire.protocols.xml_element import BLOCK_TAGS
from toolwire.protocols.xml_prompt import describe_xml
from toolwire.protocols.xml_render import render_xml
from toolwire.protocols.xml_stream import XmlStream
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

_CALL = re.compile(
    rf"<tool_call(?:\s[^<>]*+)?+>\s*+<[^\W\d]|<name>[^<>]{{1,300}}+</name>\s*+<(?:{BLOCK_TAGS})\s*+/?>|\A\s*+<fail>"
)


@writes_encodable
class Xml:
    """The protocol object. It holds nothing."""

    @property
    def name(self) -> str:
        """`xml`."""
        return "xml"

    @property
    def is_native(self) -> bool:
        """No: calls stand in text."""
        return False

    @property
    def writes_programs(self) -> bool:
        """No: `code_execution` is listed among the tools where there is one."""
        return False

    def describe(self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short") -> str:
        """The whole system prompt: rules, the tools, two examples. `thought="full"` asks for thinking in `<think>`.

        Raises:
            ConfigurationError: an unknown language or thought.
        """
        return describe_xml(tools, language=language, thought=thought)

    def recognises(self, reply: Any) -> bool:
        """Whether a call of this form stands in the text, wherever it stands, but in a string of JSON."""
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and _CALL.search(reply) is not None and not is_json(reply)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Its calls, with arguments converted by the tools' schemas; a failure; text; or problems.

        Where a tool is not known, `true`, `false`, whole and decimal numbers are converted, and all else is text.
        """
        return parse_xml(reply, tools)

    def stream(self, tools: Iterable[Any] = ()) -> XmlStream:
        """Reads a reply while it comes in: text, or bytes in UTF-8."""
        return XmlStream(tools)

    def render(self, calls: Sequence[ToolCall], *, tools: Iterable[Any] = ()) -> str:
        """The reply by which a model would make these calls.

        A value that its text alone would not bring back is marked `type="json"`, less often where `tools` are given.

        Raises:
            Unrepresentable: an argument that JSON cannot hold.
        """
        return render_xml(calls, tools=tools)

    def format(self, results: Sequence[ToolResult]) -> str:
        """A `<tool_result>` for each result, in order; none of them is ever read as a call."""
        return format_xml(results)

    def refuse(self, reply: Reply) -> str:
        """Why nothing ran, and the form to write; for a reply that gave up, its message. Empty for a call."""
        return refuse_xml(reply)

    def grammar(self, tools: Iterable[Any]) -> str:
        """GBNF of replies that are nothing but calls of these tools.

        Raises:
            ConfigurationError: no tool that can be called.
        """
        return xml_grammar(tools)
