"""JSON in text, for models whose API has no fields for calls, and for models whose chat template lost its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolwire.protocols.json_text.grammar import json_grammar
from toolwire.protocols.json_text.layout import is_plainly_in_this_format
from toolwire.protocols.json_text.prompt import describe_json_text, json_tools_text
from toolwire.protocols.json_text.render import format_json_text, json_right_form, render_json_text
from toolwire.protocols.json_text.stream import JsonTextStream
from toolwire.protocols.outgoing import refusal_text, writes_encodable
from toolwire.protocols.text_parse import parse_json_text
from toolwire.protocols.user_prompt import PromptContent, text_prompt
from toolwire.vocabulary.calls import Reply

_REMINDER = (
    "Write the calls as a list in strict JSON between tags, as in the system prompt: "
    '<tool_call>[{"name": ..., "arguments": {...}}]</tool_call>'
)
"""It cannot be read as a call, because a model copies it. The prompt has the examples."""


@writes_encodable
class JsonText:
    """The protocol `json`. The object has no state."""

    name = "json"
    is_native = False
    writes_programs = False

    reminder = _REMINDER

    describe = staticmethod(describe_json_text)
    tools_text = staticmethod(json_tools_text)
    parse = staticmethod(parse_json_text)
    render = staticmethod(render_json_text)
    format = staticmethod(format_json_text)
    right_form = staticmethod(json_right_form)
    grammar = staticmethod(json_grammar)

    def recognises(self, reply: Any) -> bool:
        """True if the reply begins with a call: a tag, JSON with a call's keys, or a fence around either."""
        return isinstance(reply, str | bytes) and is_plainly_in_this_format(reply)

    def stream(self, tools: Iterable[Any] = (), *, marks_end: bool = False) -> JsonTextStream:
        """Returns a parser for a reply that arrives in pieces."""
        return JsonTextStream(tools, marks_end=marks_end)

    def prompt(self, content: PromptContent) -> list[dict[str, Any]]:
        """Returns the message of the user: the texts of the prompt as one. Media are a ConfigurationError."""
        return text_prompt(content, self.name)

    def refuse(self, reply: Reply) -> str:
        """Returns the problems. Empty if the reply has calls or an answer."""
        return refusal_text(reply)
