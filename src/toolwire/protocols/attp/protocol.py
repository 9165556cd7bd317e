"""ATTP: the model replies with a TOML document that holds a Python program, and the program calls the tools."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from toolwire.protocols.attp.grammar import attp_grammar
from toolwire.protocols.attp.parse import parse_attp
from toolwire.protocols.attp.prompt import attp_tools_text, describe_attp
from toolwire.protocols.attp.render import attp_right_form, format_attp, render_attp
from toolwire.protocols.attp.stream import AttpStream
from toolwire.protocols.outgoing import unrun_text, writes_encodable
from toolwire.protocols.tool_names import known_tools
from toolwire.protocols.user_prompt import PromptContent, text_prompt
from toolwire.vocabulary.calls import Reply

_HEADER = re.compile(r"^[ \t]*\[[ \t]*tool_call[ \t]*\][ \t]*$", re.MULTILINE)
_REMINDER = (
    "Reply with one TOML document in the form of the system prompt, and nothing around it: `thought`, then [tool_call] "
    "with `status`, `target` and `code`. If the task cannot be done, give `status` and `message` there instead. If no "
    "tool is needed any more, answer in plain text."
)
"""It cannot be read as a document, because a model copies it. The prompt has the examples."""


@writes_encodable
class Attp:
    """The protocol `attp`. The object has no state."""

    name = "attp"
    is_native = False
    writes_programs = True

    reminder = _REMINDER

    describe = staticmethod(describe_attp)
    tools_text = staticmethod(attp_tools_text)
    parse = staticmethod(parse_attp)
    render = staticmethod(render_attp)
    format = staticmethod(format_attp)
    right_form = staticmethod(attp_right_form)
    grammar = staticmethod(attp_grammar)

    def recognises(self, reply: Any) -> bool:
        """True for text with the line `[tool_call]`."""
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and _HEADER.search(reply) is not None

    def stream(self, tools: Iterable[Any] = (), *, marks_end: bool = False) -> AttpStream:
        """Returns a parser for streamed text. It reports the program line by line."""
        return AttpStream(partial(parse_attp, tools=known_tools(tools)), marks_end=marks_end)

    def prompt(self, content: PromptContent) -> list[dict[str, Any]]:
        """Returns the message of the user: the texts of the prompt as one. Media are a ConfigurationError."""
        return text_prompt(content, self.name)

    def refuse(self, reply: Reply) -> str:
        """Returns the problems, or the message of a reply that failed. Empty if it has calls."""
        return unrun_text(reply)
