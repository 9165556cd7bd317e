"""XML: the model writes each call as a `<tool_call>` element with its parameters in CDATA, and its text around it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from toolwire.protocols.outgoing import unrun_text, writes_encodable
from toolwire.protocols.reading.incoming import is_json
from toolwire.protocols.text_parse import parse_xml
from toolwire.protocols.user_prompt import PromptContent, text_prompt
from toolwire.protocols.xml.element import BLOCK_TAGS
from toolwire.protocols.xml.grammar import xml_grammar
from toolwire.protocols.xml.prompt import describe_xml, xml_tools_text
from toolwire.protocols.xml.render import format_xml, render_xml, xml_right_form
from toolwire.protocols.xml.stream import XmlStream
from toolwire.vocabulary.calls import Reply

_CALL = re.compile(
    rf"<tool_call(?:\s[^<>]*+)?+>\s*+<[^\W\d]|<name>[^<>]{{1,300}}+</name>\s*+<(?:{BLOCK_TAGS})\s*+/?>|\A\s*+<fail>"
)
_REMINDER = (
    "Write each call as in the examples of the system prompt, with each value in CDATA: "
    "<tool_call><name>...</name><params>...</params></tool_call>\n"
    "If the task cannot be done, write the reason between <fail> and </fail>, and no call."
)
"""It cannot be read as a call, because a model copies it. The prompt has the examples."""


@writes_encodable
class Xml:
    """The protocol `xml`. The object has no state."""

    name = "xml"
    is_native = False
    writes_programs = False

    reminder = _REMINDER

    describe = staticmethod(describe_xml)
    tools_text = staticmethod(xml_tools_text)
    parse = staticmethod(parse_xml)
    render = staticmethod(render_xml)
    format = staticmethod(format_xml)
    right_form = staticmethod(xml_right_form)
    grammar = staticmethod(xml_grammar)

    def recognises(self, reply: Any) -> bool:
        """True if the text contains a call of this form anywhere except in a JSON string."""
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and _CALL.search(reply) is not None and not is_json(reply)

    def stream(self, tools: Iterable[Any] = (), *, marks_end: bool = False) -> XmlStream:
        """Returns a parser for a reply that arrives in pieces of text or UTF-8 bytes."""
        return XmlStream(tools, marks_end=marks_end)

    def prompt(self, content: PromptContent) -> list[dict[str, Any]]:
        """Returns the message of the user: the texts of the prompt as one. Media are a ConfigurationError."""
        return text_prompt(content, self.name)

    def refuse(self, reply: Reply) -> str:
        """Returns the problems, or the message of a reply that failed. Empty if it has calls."""
        return unrun_text(reply)
