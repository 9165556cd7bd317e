"""ATTP: the model replies with a TOML document that holds a Python program, and the program calls the tools."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from toolwire.protocols.attp.grammar import attp_grammar
from toolwire.protocols.attp.parse import parse_attp
from toolwire.protocols.attp.prompt import attp_tools_text, describe_attp
from toolwire.protocols.attp.render import format_attp, render_attp
from toolwire.protocols.attp.stream import AttpStream
from toolwire.protocols.outgoing import unrun_text, writes_encodable
from toolwire.vocabulary.calls import Reply

_HEADER = re.compile(r"^[ \t]*\[[ \t]*tool_call[ \t]*\][ \t]*$", re.MULTILINE)
_FORM = """\
Reply with one TOML document and nothing around it:
thought = "one line"

[tool_call]
status = "success"
target = "what the program is for"
code = '''
__result__ = tool(argument)
'''

If the task cannot be done, write below [tool_call] only
status = "fail"
message = "why, and what could be done instead"

If no tool is needed any more, answer in plain text."""


@writes_encodable
class Attp:
    """The protocol `attp`. The object has no state."""

    name = "attp"
    is_native = False
    writes_programs = True

    describe = staticmethod(describe_attp)
    tools_text = staticmethod(attp_tools_text)
    parse = staticmethod(parse_attp)
    render = staticmethod(render_attp)
    format = staticmethod(format_attp)
    grammar = staticmethod(attp_grammar)

    def recognises(self, reply: Any) -> bool:
        """True for text with the line `[tool_call]`."""
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and _HEADER.search(reply) is not None

    def stream(self, tools: Iterable[Any] = ()) -> AttpStream:
        """Returns a parser for streamed text. It reports the program line by line."""
        known = tuple(tools)
        return AttpStream(lambda reply: parse_attp(reply, known))

    def refuse(self, reply: Reply) -> str:
        """Returns the problems and the expected form, or the message of a reply that failed. Empty if it has calls."""
        return unrun_text(reply, _FORM)
