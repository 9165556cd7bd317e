"""XML: the model writes each call as an element with its parameters in CDATA, and its text around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from toolwire.protocols.base import Language, Thought, checked
from toolwire.protocols.outgoing import unrun_text, writes_encodable
from toolwire.protocols.reading.incoming import is_json
from toolwire.protocols.right_call import RightCall
from toolwire.protocols.text_parse import parse_xml
from toolwire.protocols.user_prompt import PromptContent, text_prompt
from toolwire.protocols.xml.element import BLOCK_TAGS, IS_CALL_TAG, CallTag
from toolwire.protocols.xml.grammar import xml_grammar
from toolwire.protocols.xml.prompt import describe_xml, xml_tools_text
from toolwire.protocols.xml.render import format_xml, render_xml, xml_right_form
from toolwire.protocols.xml.stream import XmlStream
from toolwire.vocabulary.calls import Reply, ToolCall

_CALL = re.compile(
    rf"<tool_call(?:\s[^<>]*+)?+>\s*+<[^\W\d]|<name>[^<>]{{1,300}}+</name>\s*+<(?:{BLOCK_TAGS})\s*+/?>|\A\s*+<fail>"
)
_REMINDER = (
    "Write each call as in the examples of the system prompt, with each value in CDATA: "
    "<{tag}><name>...</name><params>...</params></{tag}>\n"
    "If the task cannot be done, write the reason between <fail> and </fail>, and no call."
)
"""It cannot be read as a call, because a model copies it. The prompt has the examples."""


@writes_encodable
@dataclass(frozen=True, kw_only=True)
class Xml:
    """The protocol `xml`. The object has no state but its option.

    Attributes:
        tag: The name of the element around a call in the texts that the model reads. Replies with either are read.
    """

    name = "xml"
    is_native = False
    writes_programs = False

    tag: CallTag = "tool_call"

    tools_text = staticmethod(xml_tools_text)
    format = staticmethod(format_xml)

    def __post_init__(self) -> None:
        checked("tag", self.tag, IS_CALL_TAG)

    @property
    def reminder(self) -> str:
        """The form of a call in few words."""
        return _REMINDER.format(tag=self.tag)

    def describe(self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short") -> str:
        """Returns the system prompt: rules, tools and two examples. `thought="full"` asks for thinking in `<think>`.

        Raises:
            ConfigurationError: The language or the thought style is unknown.
            DefinitionError: One of the objects is not a tool.
        """
        return describe_xml(tools, language=language, thought=thought, tag=self.tag)

    def right_form(self, calls: Sequence[RightCall]) -> str:
        """Returns the right form of calls, as `xml_right_form`."""
        return xml_right_form(calls, tag=self.tag)

    def recognises(self, reply: Any) -> bool:
        """True if the text contains a call of this form anywhere except in a JSON string."""
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and _CALL.search(reply) is not None and not is_json(reply)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Parses an XML reply into calls, a failure, a plain text answer, or the reasons for a refusal.

        Raises:
            ConfigurationError: The host passed something other than text.
        """
        return parse_xml(reply, tools, tag=self.tag)

    def stream(self, tools: Iterable[Any] = (), *, marks_end: bool = False) -> XmlStream:
        """Returns a parser for a reply that arrives in pieces of text or UTF-8 bytes."""
        return XmlStream(tools, marks_end=marks_end, tag=self.tag)

    def render(self, calls: Sequence[ToolCall], *, tools: Iterable[Any] = ()) -> str:
        """Returns the reply with which a model would make these calls, as `render_xml`."""
        return render_xml(calls, tools=tools, tag=self.tag)

    def prompt(self, content: PromptContent) -> list[dict[str, Any]]:
        """Returns the message of the user: the texts of the prompt as one. Media are a ConfigurationError."""
        return text_prompt(content, self.name)

    def refuse(self, reply: Reply) -> str:
        """Returns the problems, or the message of a reply that failed. Empty if it has calls."""
        return unrun_text(reply)

    def grammar(self, tools: Iterable[Any]) -> str:
        """Returns the GBNF grammar of replies that make one to eight calls.

        Raises:
            ConfigurationError: None of the tools can be called.
        """
        return xml_grammar(tools, tag=self.tag)
